//! The tokens themselves, one snapshot for each form of function. After a change, run with `LEAP_SNAPSHOTS=overwrite`
//! and read the difference.

use std::fs;
use std::path::Path;

use proc_macro2::TokenStream;
use quote::quote;

/// Compares what `#[guarded(args)] item` expands to with the snapshot `name`.
fn assert_snapshot(name: &str, args: TokenStream, item: TokenStream) {
    compare(name, crate::guard(args, item));
}

/// The same for a method.
fn assert_method_snapshot(name: &str, args: TokenStream, method: TokenStream) {
    let method = crate::guard(args, method);
    compare(name, quote!(impl Shop { #method }));
}

fn compare(name: &str, expanded: TokenStream) {
    let expanded = prettyplease::unparse(&syn::parse2(expanded).expect("an expansion is an item"));
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/expand/snapshots").join(name).with_extension("rs");
    if std::env::var_os("LEAP_SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, &expanded).expect("the snapshots are in this crate");
    }
    let snapshot = fs::read_to_string(&path).unwrap_or_default();
    assert!(expanded == snapshot, "{name} now expands to\n\n{expanded}\nand not to\n\n{snapshot}");
}

#[test]
fn a_function_runs_its_body_in_an_entry() {
    assert_snapshot(
        "function",
        quote!(resource = "orders.create", qps = 100, slow_rt_ms = 200),
        quote! {
            /// Creates an order.
            #[must_use]
            pub fn create(order: Order, mut tries: u32) -> Result<Id, AppError> {
                #![allow(unused)]
                store(order, tries)
            }
        },
    );
}

#[test]
fn an_async_function_enters_when_it_is_first_polled() {
    assert_snapshot(
        "async_function",
        quote!("orders.create", max_concurrency = 32),
        quote! {
            pub(crate) async fn create(order: Order) -> Result<Id, AppError> {
                store(order).await
            }
        },
    );
}

#[test]
fn a_method_takes_self_along() {
    assert_method_snapshot(
        "method",
        quote!(),
        quote! {
            fn count(&self, sku: &str) -> Result<u32, Blocked> {
                Ok(self.stock[sku])
            }
        },
    );
    assert_method_snapshot(
        "method_by_value",
        quote!(),
        quote! {
            default fn close(mut self) -> Result<Self, Blocked> {
                self.name.clear();
                Ok(self)
            }
        },
    );
    assert_method_snapshot(
        "async_method",
        quote!(),
        quote! {
            async fn count(self: Arc<Self>, sku: &str) -> Result<u32, Blocked> {
                Ok(self.stock[sku])
            }
        },
    );
}

#[test]
fn patterns_move_from_the_signature_into_the_body() {
    assert_snapshot(
        "patterns",
        quote!(),
        quote! {
            fn patterns((a, b): (u8, u8), _: String, ref mut c: String, #[cfg(any())] d: u8) -> Result<u8, Blocked> {
                Ok(a + b)
            }
        },
    );
}

#[test]
fn generics_and_opaque_types_stay_in_the_signature() {
    assert_snapshot(
        "generic_function",
        quote!(),
        quote! {
            unsafe fn names<'a, T: ?Sized, const N: usize>(
                of: &'a T,
            ) -> Result<(impl Iterator<Item = impl Fn() -> u8> + 'a, [u8; N]), AppError>
            where
                T: Names,
            {
                of.names()
            }
        },
    );
    assert_snapshot(
        "opaque_async_function",
        quote!(),
        quote! {
            async fn name() -> Result<Box<dyn Iterator<Item = impl ToString>>, AppError> {
                all().await
            }
        },
    );
}

#[test]
fn a_fallback_is_called_with_the_arguments_and_the_block() {
    assert_method_snapshot(
        "fallback",
        quote!(fallback = Self::last_known),
        quote! {
            fn stock(&mut self, sku: &str, _: u8) -> u32 {
                self.look_up(sku)
            }
        },
    );
    assert_snapshot(
        "async_fallback",
        quote!(fallback = last_known::<u8>),
        quote! {
            async fn stock(sku: &str) -> u32 {
                look_up(sku).await
            }
        },
    );
    assert_snapshot(
        "unit_fallback",
        quote!(fallback = log),
        quote! {
            fn publish(event: Event) {
                send(event);
            }
        },
    );
    assert_snapshot(
        "never_fallback",
        quote!(fallback = exit),
        quote! {
            async fn serve() -> ! {
                loop {}
            }
        },
    );
}

#[test]
fn a_fallback_may_be_written_where_it_is_needed() {
    assert_snapshot(
        "closure_fallback",
        quote!(fallback = |sku, (a, b): (u8, u8), blocked| sku.len()),
        quote! {
            fn stock(sku: &str, pair: (u8, u8)) -> usize {
                look_up(sku, pair)
            }
        },
    );
    assert_method_snapshot(
        "expression_fallback",
        quote!(fallback = self.last_known(a, blocked)),
        quote! {
            async fn stock(&self, sku: &str, (mut a, b): (u8, u8)) -> u32 {
                self.look_up(sku, a, b).await
            }
        },
    );
}

#[test]
fn a_fallback_on_errors_comes_after_the_call() {
    assert_snapshot(
        "fallback_on_error",
        quote!(fallback_on = error, fallback = recover),
        quote! {
            fn stock(sku: &str, n: u8) -> Result<u32, AppError> {
                look_up(sku, n)
            }
        },
    );
    assert_snapshot(
        "async_fallback_on_any",
        quote!(fallback_on = any, fallback = recover(n, error)),
        quote! {
            async fn stock(sku: String, n: u8) -> Result<u32, AppError> {
                look_up(sku, n).await
            }
        },
    );
}

#[test]
fn a_body_that_is_an_async_block_is_as_that_of_an_async_function() {
    assert_method_snapshot(
        "async_block",
        quote!(),
        quote! {
            fn stock<'a>(&'a self, mut sku: String) -> Pin<Box<dyn Future<Output = Result<u32, AppError>> + Send + 'a>> {
                Box::pin(async move {
                    sku.push('!');
                    self.look_up(sku).await
                })
            }
        },
    );
    assert_snapshot(
        "async_block_fallback",
        quote!(fallback = last_known, hot(key = sku, qps = 1)),
        quote! {
            fn stock(mut sku: String) -> impl Future<Output = u32> {
                async move { look_up(sku).await }
            }
        },
    );
}

#[test]
fn a_future_or_stream_is_made_by_the_body_and_guarded_when_it_is_polled() {
    assert_snapshot(
        "made_future",
        quote!(origin = sku, hot(key = sku, qps = 1)),
        quote! {
            fn stock(sku: &str) -> BoxFuture<'static, Result<u32, AppError>> {
                let id = id_of(sku);
                Box::pin(async move { look_up(id).await })
            }
        },
    );
    assert_snapshot(
        "made_stream",
        quote!(),
        quote! {
            fn stock(sku: &str) -> Pin<Box<dyn Stream<Item = Result<u32, AppError>> + Send>> {
                Box::pin(watch(sku))
            }
        },
    );
    assert_snapshot(
        "stream_fallback",
        quote!(fallback = last_known),
        quote! {
            fn stock(sku: &str) -> impl Stream<Item = u32> {
                watch(sku)
            }
        },
    );
}

#[test]
fn each_method_of_a_block_is_guarded_but_those_that_have_an_attribute_of_their_own() {
    assert_snapshot(
        "block",
        quote!(qps = 10),
        quote! {
            /// A shop.
            impl<T> Stock for Shop<T> {
                const LIMIT: u32 = { 1 };

                #[guarded(skip)]
                fn new() -> Self {
                    Self::default()
                }

                #[leap_runtime::guarded("stock.write")]
                fn write(&mut self) {}

                pub async fn read(&self) -> Result<T, Blocked> {
                    self.0
                }
            }
        },
    );
}

#[test]
fn verdicts_are_asked_in_their_order() {
    assert_snapshot(
        "verdicts",
        quote!(
            err_if = Answer::is_broken,
            ok_if = |answer| answer.is_ok(),
            ignore(AppError::Invalid(_) | AppError::Gone)
        ),
        quote! {
            fn check(order: &Order) -> Answer {
                order.check()
            }
        },
    );
}

#[test]
fn every_rule_is_made_by_a_const_fn() {
    assert_snapshot(
        "rules",
        quote!(
            resource = NAME,
            permits = 2 * PERMITS,
            qps = LIMIT,
            precision = strict,
            buckets = 10,
            rate(limit = 1_000, per_ms = HOUR),
            rate(limit = 5.5, per_ms = 500, precision = sentinel, buckets = 2),
            max_concurrency = 0x20,
            slow_rt_ms = 200u64,
            slow_ratio = 0.5,
            error_ratio = 1,
            error_count = 10,
            queue_ms = 100,
            min_calls = 20,
            window_ms = 10_000,
            open_ms = 2_000,
            probes = 3,
            allow("web", BATCH),
            mode = off
        ),
        quote! {
            fn all() -> Result<(), Blocked> {
                Ok(())
            }
        },
    );
}

#[test]
fn what_is_above_a_limit_is_said_with_it() {
    assert_snapshot(
        "behaviors",
        quote!(
            qps = 0.5,
            behavior = throttle,
            max_wait_ms = 2 * SECOND,
            burst = 3,
            rate(
                limit = 100,
                per_ms = 1_000,
                behavior = warm_up_throttle,
                warm_up_ms = 20_000,
                cold_factor = 2.5,
                max_wait_ms = 0
            ),
            rate(limit = 10, per_ms = 500, behavior = reject, associated = "orders.write"),
            error_count = 10,
            window_calls = 100,
            open_max_ms = MINUTE,
            recovery = ramp
        ),
        quote! {
            fn all() -> Result<(), Blocked> {
                Ok(())
            }
        },
    );
}

#[test]
fn keys_and_origin_are_looked_at_before_the_call_enters() {
    assert_method_snapshot(
        "request",
        quote!(
            resource = "orders.create",
            permits = 2,
            inbound,
            priority,
            origin = self.app.as_deref(),
            entrance = ENTRANCE,
            deny("batch"),
            hot(key = order . user , qps = 10, burst = 5, max_keys = 100, except("vip" => 1_000, -1 => 0.5, true => 1, 'c' => LIMIT)),
            hot(key = _shop, name = "shop", qps = 1, per_ms = 2_000, behavior = throttle, max_wait_ms = 50, precision = sentinel),
            hot(key = _shop, name = "shop", max_concurrency = 3),
            hot(key = (order.id, 7))
        ),
        quote! {
            fn create(&self, order: Order, _shop: u32, _other: u8) -> Result<Id, AppError> {
                self.store(order)
            }
        },
    );
    assert_snapshot(
        "async_request",
        quote!(inbound = true, priority = false, entrance = "web", hot(key = id, qps = 10), fallback = none),
        quote! {
            async fn find(id: &str) -> Option<Item> {
                look_up(id).await
            }
        },
    );
}

#[test]
fn a_call_with_nothing_to_say_is_plain() {
    let guarded = crate::guard(
        quote!(inbound = false, priority = false, allow("web")),
        quote!(
            fn f() -> Result<(), Blocked> {
                Ok(())
            }
        ),
    );
    assert!(guarded.to_string().contains("__site . enter (__permits)"), "{guarded}");
}

#[test]
fn a_runtime_under_another_name_is_found_by_its_path() {
    assert_snapshot(
        "crate_path",
        quote!(crate = crate::facade::flow, qps = 1),
        quote! {
            fn function() -> Result<(), Blocked> {
                Ok(())
            }
        },
    );
}

#[test]
fn a_mistake_leaves_the_function_as_it_is() {
    assert_snapshot(
        "mistake",
        quote!(qsp = 1, qps = -1),
        quote! {
            pub const fn function() -> Result<(), Blocked> {
                Ok(())
            }
        },
    );
}

#[test]
fn half_typed_code_expands_as_far_as_it_goes() {
    for body in [quote!({ self. }), quote!({ let x: }), quote!({ f(,) })] {
        let expanded = crate::guard(quote!(qps = 1), quote!(fn typing(&self) -> Result<(), Blocked> #body));
        assert!(!expanded.to_string().contains("compile_error"), "{expanded}");
    }
    for (args, item) in [
        (
            quote!(qps =),
            quote!(
                fn f() {}
            ),
        ),
        (
            quote!(rate(limit), =, , ignore(), hot(key =), hot(, except(1 =>)), allow(, ), origin = a.),
            quote!(
                fn f() {}
            ),
        ),
        (quote!(), quote!(fn f(a, b: ) {})),
        (quote!(), quote!(fn f())),
        (quote!(), quote!(fn)),
        (quote!(), quote!()),
    ] {
        let expanded = crate::guard(args, item.clone()).to_string();
        assert!(expanded.contains("compile_error") && expanded.ends_with(&item.to_string()), "{expanded}");
    }
}
