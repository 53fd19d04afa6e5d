//! The attribute of leap. Use it through `leap_runtime`, which re-exports [`guarded`](macro@guarded) and is what its
//! expansion calls.
#![forbid(unsafe_code)]

mod args;
mod errors;
mod expand;
mod fallback;
mod model;

use proc_macro2::TokenStream;

/// Guards a function: every call enters a named resource, is let through or blocked by rules, and is counted, again
/// when it ends, however it ends.
///
/// ```text
/// #[guarded(resource = "orders.create", qps = 100, slow_rt_ms = 200)]
/// async fn create(order: Order) -> Result<Id, AppError> { /* … */ }      // AppError: From<Blocked>
///
/// #[guarded(resource = "stock.read", max_concurrency = 32, error_ratio = 0.5, fallback = last_known)]
/// fn stock(sku: &str) -> u32 { /* … */ }
/// fn last_known(sku: &str, blocked: Blocked) -> u32 { /* … */ }
/// ```
///
/// It goes on functions and methods with a body, of every kind but `const fn`: with any receiver, in traits and their
/// `impl`s, generic, async. **The signature stays as it is.** What a blocked call returns is said in one of two ways:
///
/// - The return type implements `FromBlocked`, as `Result<T, E>` does where `E: From<Blocked>`.
/// - A `fallback` is called.
///
/// Otherwise the function does not compile, and the error says so at its return type.
///
/// # Arguments
///
/// All are optional. A number is a literal, which is checked at once, or a const expression, which is checked when the
/// function is compiled: a rule that makes no sense cannot be written. Const expressions see neither generic parameters
/// nor `Self`, as all callers share one guard.
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `resource`, or a bare literal in first place | name, at most 1 024 bytes | the function's path with its type: `shop::Cart::add` | the resource that calls enter |
/// | `permits` | whole number from 1 | 1 | the permits that one call asks for |
/// | `fallback` | path of a function | | answers blocked calls |
/// | `ignore(pattern)` | pattern for the `E` of an `Err` | | such calls end as *ignored* |
/// | `ok_if` | predicate: path or closure over `&Ret` | | such calls end as a *success* |
/// | `err_if` | predicate | | such calls end as an *exception* |
/// | `mode` | `enforce`, `off` | `enforce` | for all rules of this attribute: `off` keeps, shows and counts, and blocks nothing |
/// | `crate` | path | `::leap_runtime` | the runtime, if it has another name |
///
/// Limits on permits per interval (rules of kind *flow*):
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `qps` | 0, which blocks all, or any number from 1 | permits per second | at most so many permits in any second |
/// | `rate(limit = , per_ms = )` | limit as of `qps`; whole number from 1 | permits; ms | at most `limit` permits in any `per_ms`; may be given several times |
/// | `precision`, in or outside of `rate(…)` | `exact`, `strict`, `sentinel` | `exact` up to 1 024 permits per interval, else `strict` | how the interval is counted; outside it is `qps`'s |
/// | `buckets`, likewise | whole number that divides the interval | 100 | the parts that `strict` and `sentinel` count in |
///
/// A limit on calls in flight (*isolation*):
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `max_concurrency` | whole number; 0 blocks all | permits | at most so many in flight |
///
/// Circuit breakers, one for each of the first three that is given:
///
/// | argument | value | unit, default | what it is |
/// | --- | --- | --- | --- |
/// | `slow_rt_ms` | whole number | ms | opens when more than `slow_ratio` of the calls take longer than this |
/// | `error_ratio` | 0 to 1 | | opens when more than this share of the calls end with an exception |
/// | `error_count` | whole number | calls | opens when more than so many calls end with an exception |
/// | `slow_ratio` | 0 to 1 | 1.0: all calls were slow | the share of slow calls that is borne; most services want less, e.g. 0.5 |
/// | `min_calls` | whole number from 1 | 5 | calls that a window needs before it means anything |
/// | `window_ms` | whole number from 1 | 1 000 ms | the windows that calls are judged in, one after another as in Sentinel: calls on both sides of a boundary are not judged together |
/// | `open_ms` | whole number from 1 | 5 000 ms | how long calls are blocked before probes are let through |
/// | `probes` | 1 to 1 023 | 1 | probes that must succeed to close the breaker |
///
/// Functions that are guarded under one resource share its limits and its statistics, and their attributes' rules add up.
/// A rule that is loaded while the service runs replaces all rules of its kind that attributes gave the resource.
///
/// # How a call ends
///
/// In this order: an `Err` that `ignore` matches is ignored; what `ok_if` accepts is a success; what `err_if` accepts is
/// an exception; any other `Err` is an exception, under whatever alias of `Result` it is returned; everything else is a
/// success. A panic of the body is an exception and goes on unchanged. A future that is dropped half-way is *cancelled*.
///
/// An error that is passed up through several guarded functions counts on each of them. So does a `Blocked` of an inner
/// one: for the outer one it is an exception like any other `Err`, unless `ignore(AppError::Blocked(_))` says otherwise.
///
/// # Fallbacks
///
/// A fallback gets `self`, if there is one, then the arguments by value, which nothing has used yet, and then the
/// `Blocked`. It serves blocks only: the body's own errors are returned as they are. An async function's fallback may be
/// async or not.
///
/// # What it writes
///
/// ```text
/// #[guarded(resource = "orders.create", qps = 100)]
/// fn create(order: Order) -> Result<Id, AppError> { … }
///
/// // becomes
/// fn create(order: Order) -> Result<Id, AppError> {
///     let (site, permits) = {
///         static RULES: [Rule; 1] = [flow(100.0, 1_000, …)];
///         fn here() -> &'static str { /* this function's path */ }
///         static SITE: CallSite = CallSite::new(Some("orders.create"), here, &RULES);
///         (&SITE, 1)
///     };
///     let mut entry = site.enter(permits);
///     match entry {
///         Ok(ref mut entry) => run(entry, move || -> Result<Id, AppError> { let order = order; { … } }, /* how it ended */),
///         Err(blocked) => FromBlocked::from_blocked(blocked),
///     }
/// }
/// ```
///
/// All that an async function does is in the future that it returns: it enters when that is first polled.
///
/// # What it does not do yet
///
/// A function that is not async and returns a future is refused where the type says so; behind a type alias only the
/// making of the future would be guarded. The body becomes a closure, so `#[track_caller]` no longer tells it its
/// caller's place.
#[proc_macro_attribute]
pub fn guarded(args: proc_macro::TokenStream, item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    guard(args.into(), item.into()).into()
}

fn guard(args: TokenStream, item: TokenStream) -> TokenStream {
    let guarded = args::parse(args).and_then(|args| model::Guarded::new(args, item.clone()));
    match guarded {
        Ok(guarded) => expand::expand(&guarded),
        Err(error) => fallback::expand(item, &error),
    }
}
