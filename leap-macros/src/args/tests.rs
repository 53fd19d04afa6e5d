use quote::quote;

use super::*;

/// The messages about what is written.
fn mistakes(tokens: TokenStream) -> Vec<String> {
    match parse(tokens) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

fn args(tokens: TokenStream) -> Args {
    parse(tokens).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_word_alone_is_true_and_may_be_said_to_be_or_not() {
    let read = |tokens| args(tokens).inbound.is_some_and(|given| given.value);
    assert!(read(quote!(inbound)));
    assert!(read(quote!(qps = 1, inbound, priority)));
    assert!(read(quote!(inbound = true)));
    assert!(!read(quote!(inbound = false)));
    assert_eq!(
        mistakes(quote!(inbound = IN, priority = 1)),
        [
            "write `inbound` alone, or `inbound = true` or `inbound = false`",
            "write `priority` alone, or `priority = true` or `priority = false`"
        ]
    );
    assert_eq!(
        mistakes(quote!(inbound = in, qps = 1)),
        ["write `inbound` alone, or `inbound = true` or `inbound = false`"]
    );
}

#[test]
fn another_direction_is_told_what_the_default_is() {
    let expected = "a call is outbound unless `inbound` is given; leave `outbound` out";
    assert_eq!(mistakes(quote!(outbound = true)), [expected]);
    assert_eq!(mistakes(quote!(outbound)), [expected]);
    assert_eq!(
        mistakes(quote!(direction = inbound)),
        ["unknown argument `direction`; did you mean `inbound`?"]
    );
}

#[test]
fn arguments_of_a_list_are_told_where_they_belong() {
    assert_eq!(
        mistakes(quote!(max_keys = 3, limit = 5)),
        [
            "`max_keys` stands inside `hot(…)`: `hot(key = user_id, qps = 10)`",
            "`limit` stands inside `rate(…)`: `rate(limit = 1_000, per_ms = 60_000)`"
        ]
    );
    assert_eq!(mistakes(quote!(hot(key = a, limit = 1))).len(), 1);
}

#[test]
fn values_without_their_names_are_told_them() {
    let expected = ["each value has its name: `rate(limit = 4, per_ms = 60 * 1_000)`"];
    assert_eq!(mistakes(quote!(rate(4, 60 * 1_000))), expected);
    let expected = ["expected an argument, e.g. `rate(limit = 1_000, per_ms = 60_000)`"];
    assert_eq!(mistakes(quote!(rate(4, per_ms = 60))), expected);
    let expected = ["`limit` is written `limit = 1_000`", "`per_ms` is written `per_ms = 60_000`"];
    assert_eq!(mistakes(quote!(rate(limit, per_ms))), expected);

    assert_eq!(mistakes(quote!(hot(user, qps = 2))), ["each value has its name: `key = user`"]);
    assert_eq!(mistakes(quote!(hot(key, qps = 2))), ["`key` is written `key = user_id`"]);
    let expected = ["expected an argument, e.g. `hot(key = user_id, qps = 10)`"];
    assert_eq!(mistakes(quote!(hot(key = user, 2))), expected);

    let expected = ["the name of a resource stands in quotes: `\"mail.send\"`"];
    assert_eq!(mistakes(quote!(mail.send, qps = 2)), expected);
    let expected = ["the name of a resource stands in quotes: `\"crate::mail\"`"];
    assert_eq!(mistakes(quote!(crate::mail)), expected);
}

#[test]
fn a_key_that_is_the_same_for_every_call_is_none() {
    for key in [quote!(0), quote!(-1), quote!("ann"), quote!(&"ann"), quote!((true)), quote!('a')] {
        let expected = "this key is the same for every call";
        for mistakes in [mistakes(quote!(hot(key = #key, qps = 1))), mistakes(quote!(hot(#key, qps = 1)))] {
            assert!(matches!(&mistakes[..], [only] if only.starts_with(expected)), "{key}: {mistakes:?}");
        }
    }
    for key in [quote!(user), quote!(&user), quote!(user.0), quote!(USER), quote!("ann".len())] {
        assert!(mistakes(quote!(hot(key = #key, qps = 1))).is_empty(), "{key}");
    }
}

#[test]
fn words_that_stand_for_several_are_explained() {
    for (word, named) in [
        (quote!(grade), "`max_concurrency`"),
        (quote!(strategy), "`error_count`"),
        (quote!(cpu), "`RuleSet::system`"),
        (quote!(load), "`RuleSet::system`"),
        (quote!(system), "`RuleSet::system`"),
    ] {
        let found = mistakes(quote!(#word = 1));
        assert!(found.len() == 1 && found[0].contains(named), "{found:?}");
    }
}

#[test]
fn exceptions_are_literals_each_with_a_number() {
    let hot =
        args(quote!(hot(key = a, qps = 1, except("vip" => 1_000, -42i64 => 0, true => 5.5, 'c' => 2,))))
            .hots
            .remove(0);
    let read: Vec<(Constant, Option<f64>)> = hot
        .except
        .into_iter()
        .flat_map(|given| given.value)
        .map(|exception| (exception.of, exception.limit.known))
        .collect();
    assert_eq!(
        read,
        [
            (Constant::Text("vip".into()), Some(1_000.0)),
            (Constant::Int(-42), Some(0.0)),
            (Constant::Bool(true), Some(5.5)),
            (Constant::Char('c'), Some(2.0)),
        ]
    );
}

#[test]
fn the_same_exception_is_found_however_it_is_written() {
    assert_eq!(
        mistakes(quote!(hot(key = a, qps = 1, except(16 => 1, "a" => 1, 0x10u8 => 2, r"a" => 3)))),
        ["the limit of `0x10u8` is given twice", "the limit of `r\"a\"` is given twice"]
    );
    assert_eq!(mistakes(quote!(hot(key = a, qps = 1, except("a" => 1, 'a' => 1, 1 => 1, -1 => 1)))).len(), 0);
}

#[test]
fn mistakes_of_all_lists_are_told_together() {
    let found = mistakes(quote!(
        allow(),
        deny("a", "", 5),
        hot(key = a, qps = -1, except(1.5 => 1, VIP => 1, "vip" => -1, "a")),
        recovery = slowly,
        cold_factor = 1
    ));
    assert_eq!(found.len(), 10, "{found:#?}");
}
