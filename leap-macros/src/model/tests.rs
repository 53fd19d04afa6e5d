use quote::quote;

use proc_macro2::TokenStream;

use super::*;
use crate::args;

fn guarded(args: TokenStream, item: TokenStream) -> Result<Guarded> {
    Guarded::new(args::parse(args)?, Function::new(item)?)
}

/// The messages about what does not go together.
fn mistakes(args: TokenStream) -> Vec<String> {
    mistakes_on(
        args,
        quote!(
            fn f(a: u8, b: u8) {}
        ),
    )
}

fn mistakes_on(args: TokenStream, item: TokenStream) -> Vec<String> {
    match guarded(args, item) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

fn keys(args: TokenStream) -> Vec<String> {
    let guarded = guarded(
        args,
        quote!(
            fn f(a: u8) {}
        ),
    );
    let guarded = guarded.unwrap_or_else(|error| panic!("{error}"));
    guarded.request.keys.iter().map(|key| key.name.value()).collect()
}

#[test]
fn each_setting_goes_with_its_behaviors_only() {
    let goes = |behavior: &str, setting: TokenStream| {
        let behavior = Ident::new(behavior, proc_macro2::Span::call_site());
        let outside = mistakes(quote!(qps = 10, behavior = #behavior, #setting));
        let inside = mistakes(quote!(rate(limit = 10, per_ms = 1_000, behavior = #behavior, #setting)));
        assert_eq!(outside, inside);
        outside.is_empty()
    };
    let of = |setting: TokenStream| {
        ["reject", "warm_up", "throttle", "warm_up_throttle"].map(|behavior| goes(behavior, setting.clone()))
    };
    assert_eq!(of(quote!(warm_up_ms = 1)), [false, true, false, true]);
    assert_eq!(of(quote!(cold_factor = 1.5)), [false, true, false, true]);
    assert_eq!(of(quote!(max_wait_ms = 0)), [false, false, true, true]);
    assert_eq!(of(quote!(burst = 1)), [false, false, true, false]);
    assert_eq!(of(quote!(associated = "b")), [true, false, false, false]);
    assert_eq!(of(quote!(buckets = 10)), [true, true, false, true]);
    assert_eq!(of(quote!(precision = exact)), [true, true, false, true]);
    assert_eq!(of(quote!(precision = sentinel)), [true, true, true, true]);
}

#[test]
fn a_fraction_of_a_permit_is_a_limit_where_calls_are_paced() {
    assert!(mistakes(quote!(qps = 0.5, behavior = throttle)).is_empty());
    assert!(mistakes(quote!(qps = 0.01, behavior = warm_up_throttle)).is_empty());
    assert!(mistakes(quote!(hot(key = a, qps = 0.5, behavior = throttle))).is_empty());
    assert!(mistakes(quote!(hot(key = a, qps = 0.5, burst = 1))).is_empty());
    assert_eq!(mistakes(quote!(qps = 0.5, behavior = warm_up)).len(), 1);
    assert_eq!(
        mistakes(quote!(hot(key = a, qps = 0.5, per_ms = 100))),
        [
            "a limit between 0 and 1 would let no call through; for one in 200 ms write `qps = 1, per_ms = 200`"
        ]
    );
}

#[test]
fn a_window_holds_the_calls_that_a_verdict_needs_and_the_longest_opening_the_first() {
    assert!(mistakes(quote!(error_count = 1, window_calls = 5)).is_empty());
    assert!(mistakes(quote!(error_count = 1, window_calls = 20, min_calls = 20)).is_empty());
    assert!(mistakes(quote!(error_count = 1, window_calls = 3, min_calls = MIN)).is_empty());
    assert_eq!(mistakes(quote!(error_count = 1, window_calls = 4)).len(), 1);
    assert_eq!(mistakes(quote!(error_count = 1, window_calls = 19, min_calls = 20)).len(), 1);
    assert_eq!(mistakes(quote!(error_count = 1, window_calls = 5, window_ms = 5)).len(), 1);

    assert!(mistakes(quote!(error_count = 1, open_max_ms = 5_000)).is_empty());
    assert!(mistakes(quote!(error_count = 1, open_ms = 6_000, open_max_ms = 6_000)).is_empty());
    assert_eq!(mistakes(quote!(error_count = 1, open_max_ms = 4_999)).len(), 1);
    assert_eq!(mistakes(quote!(error_count = 1, open_ms = 6_000, open_max_ms = 5_999)).len(), 1);
}

#[test]
fn a_setting_of_a_hot_key_needs_the_limit_that_it_speaks_of() {
    assert!(mistakes(quote!(hot(key = a))).is_empty());
    assert!(mistakes(quote!(hot(key = a, max_concurrency = 1, max_keys = 10, except(1 => 2)))).is_empty());
    assert_eq!(mistakes(quote!(hot(key = a, burst = 1, per_ms = 5, behavior = throttle))).len(), 3);
    assert_eq!(mistakes(quote!(hot(key = a, max_concurrency = 1, precision = sentinel))).len(), 1);
    assert_eq!(mistakes(quote!(hot(key = a, qps = 1, max_wait_ms = 5))).len(), 1);
    assert_eq!(mistakes(quote!(hot(key = a, max_keys = 5, except(1 => 2)))).len(), 2);
    assert_eq!(mistakes(quote!(hot(qps = 5))).len(), 1);
}

#[test]
fn a_key_is_called_by_its_text_with_spaces_where_rustfmt_puts_them() {
    for (key, name) in [
        (quote!(user), "user"),
        (quote!(req.user.id), "req.user.id"),
        (quote!(&req.user), "&req.user"),
        (quote!(pair.0), "pair.0"),
        (quote!(self.app(&mut x, 5)), "self.app(&mut x, 5)"),
        (quote!(r#type.r#match), "type.match"),
        (quote!(r#"a"#.len()), "r#\"a\"#.len()"),
        (
            quote!({
                let id = Id::<u8, A>::of(req)?.0[1];
                id
            }),
            "{ let id = Id::<u8, A>::of(req)?.0[1]; id }",
        ),
        (quote!((user, shop)), "(user, shop)"),
        (quote!(a + -b * !c), "a + -b * !c"),
        (quote!(a == b && c << 2 != *d), "a == b && c << 2 != *d"),
        (quote!(id as u64), "id as u64"),
        (quote!(format!("{a}-{b}")), "format!(\"{a}-{b}\")"),
        (quote!({ a }), "{ a }"),
    ] {
        assert_eq!(keys(quote!(hot(key = #key))), [name]);
    }
}

#[test]
fn a_key_is_given_once_however_many_rules_go_by_it() {
    assert_eq!(
        keys(quote!(hot(key = a, qps = 1), hot(key = a.b), hot(key = a, max_concurrency = 3))),
        ["a", "a.b"]
    );
    assert_eq!(keys(quote!(hot(key = a, name = "x"), hot(key = a, name = "y"))), ["x", "y"]);
    assert_eq!(
        mistakes(quote!(
            hot(key = a, name = "x"),
            hot(key = b, name = "x"),
            hot(key = b, name = "a"),
            hot(key = a)
        )),
        [
            "`x` is the name of `a` already; give this key another `name`",
            "`a` is the name of `b` already; give this key another `name`"
        ]
    );
}

#[test]
fn a_key_does_not_see_what_a_pattern_binds() {
    let item = quote! {
        fn f((a, [b, ..]): Pair, Path(c): Path<u8>, S { d, e: f, .. }: S, ref g: u8, mut h: u8, whole @ (i, _): P) {}
    };
    for (key, n_mistakes) in [
        (quote!(a), 1),
        (quote!((b, c, d)), 3),
        (quote!(x(f).y), 1),
        (quote!(g), 1),
        (quote!(whole.0), 1),
        (quote!(i), 1),
        (quote!(h.a), 0),
        (quote!(e), 0),
        (quote!(h.map(|a| a.b)), 0),
        (
            quote!(match h {
                a => a,
            }),
            0,
        ),
    ] {
        let found = mistakes_on(quote!(hot(key = #key), origin = h), item.clone());
        assert_eq!(found.len(), n_mistakes, "{key}: {found:?}");
    }
    assert_eq!(mistakes_on(quote!(origin = a), item).len(), 1);
}

#[test]
fn allow_and_deny_are_two_ways_to_say_it() {
    assert!(mistakes(quote!(allow("a"))).is_empty());
    assert!(mistakes(quote!(deny("a"))).is_empty());
    assert_eq!(mistakes(quote!(allow("a"), deny("b"))).len(), 1);
}

#[test]
fn a_wait_is_told_the_limit_that_it_is_for() {
    assert_eq!(
        mistakes(quote!(max_concurrency = 4, max_wait_ms = 100)),
        ["`max_wait_ms` needs a limit per interval: add `qps`, or a `rate(…)` with it; calls above \
             `max_concurrency` wait with `queue_ms`"]
    );
    assert_eq!(
        mistakes(quote!(qps = 4, queue_ms = 100)),
        [
            "`queue_ms` needs `max_concurrency`, the limit that calls queue for; calls above a limit per interval wait \
             with `behavior = throttle`, up to `max_wait_ms`"
        ]
    );
}
