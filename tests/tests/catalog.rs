//! The catalogue: every guarded function before its first call, and the rules that are for none of them. No test calls
//! one in the global registry.
#![expect(
    clippy::unused_self,
    clippy::unwrap_used,
    reason = "methods stand here for their shape; a helper of tests"
)]

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use leap_runtime::{
    Behavior, Blocked, FlowRule, GuardedFunction, InRegistry, IsolationRule, Mode, Registry, RuleSet,
    SystemRule, catalog, guarded, registry,
};
// Names the crate, and so links it. Of its functions none is called.
use leap_tests as _;
use serde_json::json;

type Answer = Result<(), Blocked>;

const PLAIN: u32 = line!() + 2;
#[guarded(qps = 100, slow_rt_ms = 200)]
fn plain() -> Answer {
    Ok(())
}

const NAMED: u32 = line!() + 2;
#[guarded(resource = "orders.create", qps = 10, max_concurrency = 2)]
async fn named() -> Answer {
    Ok(())
}

const NAMED_TOO: u32 = line!() + 2;
#[guarded("orders.create")]
fn named_too() -> Answer {
    Ok(())
}

const BY_CONSTANT: u32 = line!() + 3;
const STOCK: &str = "stock.read";
#[guarded(resource = STOCK, qps = 5, associated = "orders.pay")]
fn by_constant() -> Answer {
    Ok(())
}

const GENERIC: u32 = line!() + 2;
#[guarded]
fn generic<T: Default, const N: usize>(_: [T; N]) -> Answer {
    Ok(())
}

struct Cart;

const METHOD: u32 = line!() + 3;
impl Cart {
    #[guarded]
    fn add(&self) -> Answer {
        Ok(())
    }

    #[guarded("cart.pay")]
    async fn pay(self) -> Answer {
        Ok(())
    }
}

const IN_TRAIT: u32 = line!() + 3;
trait Store {
    #[guarded]
    fn get(&self) -> Answer {
        Ok(())
    }

    fn put(&self) -> Answer;
}

const IN_IMPL: u32 = line!() + 3;
impl Store for Cart {
    #[guarded]
    fn put(&self) -> Answer {
        Ok(())
    }
}

impl Store for u8 {
    fn put(&self) -> Answer {
        Ok(())
    }
}

mod deep {
    use super::{Answer, guarded};

    pub(super) const INSIDE: u32 = line!() + 3;
    pub(super) fn outer() -> Answer {
        #[guarded]
        fn inside() -> Answer {
            Ok(())
        }
        inside()
    }
}

macro_rules! guarded_twice {
    ($name:ident) => {
        #[guarded]
        fn $name() -> Answer {
            Ok(())
        }

        #[guarded]
        fn of_the_macro() -> Answer {
            Ok(())
        }
    };
}

const OF_MACRO: u32 = line!() + 1;
guarded_twice!(of_the_call);

mod facade {
    pub(crate) mod flow {
        pub(crate) use leap_runtime::*;
    }
}

const BY_PATH: u32 = line!() + 2;
#[guarded(crate = facade::flow)]
fn by_path() -> Answer {
    Ok(())
}

#[allow(dead_code, reason = "it is listed all the same, and is dead as the plain function")]
mod never {
    use super::{Answer, guarded};

    pub(super) const NEVER: u32 = line!() + 2;
    #[guarded("never.called", inbound)]
    fn called() -> Answer {
        Ok(())
    }
}

/// The functions of this file.
fn own() -> Vec<GuardedFunction> {
    catalog().into_iter().filter(|function| function.location().file() == file!()).collect()
}

/// Calls them all, but for the one that cannot be called.
fn call_all(registry: &Registry) {
    fn ready(future: impl Future<Output = Answer>) {
        let Poll::Ready(answer) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
            unreachable!("nothing waits")
        };
        assert_eq!(answer, Ok(()));
    }
    registry.scope(|| {
        for function in [plain, named_too, by_constant, deep::outer, of_the_call, of_the_macro, by_path] {
            assert_eq!(function(), Ok(()));
        }
        assert_eq!((generic([1, 2]), generic([String::new()])), (Ok(()), Ok(())));
        assert_eq!((Cart.add(), Cart.get(), Cart.put()), (Ok(()), Ok(()), Ok(())));
        assert_eq!((1_u8.get(), 1_u8.put()), (Ok(()), Ok(())));
    });
    ready(named().in_registry(registry));
    ready(Cart.pay().in_registry(registry));
}

#[test]
fn every_function_is_listed_once_before_it_is_called_by_its_resource_its_path_and_its_place() {
    assert!(registry().resources().next().is_none(), "nobody has called anything");
    let listed: Vec<_> = own().iter().map(ToString::to_string).collect();
    let expected = [
        ("cart.pay", "catalog::Cart::pay", METHOD + 5, 14),
        ("catalog::Cart::add", "catalog::Cart::add", METHOD, 8),
        ("catalog::Store::get", "catalog::Store::get", IN_TRAIT, 8),
        ("<catalog::Cart as catalog::Store>::put", "<catalog::Cart as catalog::Store>::put", IN_IMPL, 8),
        ("catalog::by_path", "catalog::by_path", BY_PATH, 4),
        ("catalog::deep::outer::inside", "catalog::deep::outer::inside", deep::INSIDE, 12),
        ("catalog::generic", "catalog::generic", GENERIC, 4),
        ("catalog::of_the_call", "catalog::of_the_call", OF_MACRO, 16),
        ("catalog::of_the_macro", "catalog::of_the_macro", OF_MACRO, 1),
        ("catalog::plain", "catalog::plain", PLAIN, 4),
        ("never.called", "catalog::never::called", never::NEVER, 8),
        ("orders.create", "catalog::named", NAMED, 10),
        ("orders.create", "catalog::named_too", NAMED_TOO, 4),
        ("stock.read", "catalog::by_constant", BY_CONSTANT, 4),
    ];
    let mut expected = expected.map(|(resource, function, line, column)| {
        (resource, function, format!("{resource}: {function} at {}:{line}:{column}", file!()))
    });
    expected.sort();
    assert_eq!(listed, expected.map(|(_, _, text)| text));
}

#[test]
fn the_names_are_those_under_which_calls_are_counted() {
    let registry = Registry::new();
    call_all(&registry);
    let called: BTreeSet<_> = registry.resources().map(|stats| stats.resource().to_owned()).collect();
    let mut listed: BTreeSet<_> = own().iter().map(|function| function.resource().to_owned()).collect();
    assert!(listed.remove("never.called"));
    // That the rule of another one looks at.
    assert!(listed.insert("orders.pay".to_owned()));
    assert_eq!(called, listed);
}

#[test]
fn the_rules_are_those_of_the_attribute() {
    let rules = |name| -> Vec<_> {
        let of_that_name = own().into_iter().filter(|function| function.function() == name);
        of_that_name.flat_map(|function| function.rules().iter().map(ToString::to_string)).collect()
    };
    assert_eq!(rules("catalog::named"), ["flow: 10 per 1s, exact", "isolation: at most 2 in flight"]);
    assert_eq!(rules("catalog::named_too"), [""; 0]);
    assert_eq!(
        rules("catalog::plain"),
        ["flow: 100 per 1s, exact", "slow_ratio: all slower than 200ms of at least 5 calls in 1s, open 5s"]
    );
}

#[test]
fn a_function_says_as_data_what_it_says_as_text() {
    let function = own().into_iter().find(|function| function.resource() == "stock.read").unwrap();
    assert_eq!(
        serde_json::to_value(function).unwrap(),
        json!({
            "resource": "stock.read",
            "function": "catalog::by_constant",
            "file": file!(),
            "line": BY_CONSTANT,
            "column": 4,
            "rules": [{ "kind": "flow", "qps": 5, "associated": "orders.pay" }],
        })
    );
    let debug = format!("{function:?}");
    assert!(
        debug.starts_with(r#"GuardedFunction { resource: "stock.read", function: "catalog::by_constant", "#),
        "{debug}"
    );
    assert_eq!(
        format!("{:?}", (function.location().file(), function.location().line())),
        format!("{:?}", (file!(), BY_CONSTANT))
    );
}

#[test]
fn of_a_library_that_the_program_names_all_functions_are_listed_also_those_that_nobody_can_call() {
    let listed: Vec<_> = catalog()
        .iter()
        .filter(|function| function.resource().starts_with("tests."))
        .map(|function| (function.resource(), function.function()))
        .collect();
    assert_eq!(
        listed,
        [
            ("tests.generic", "leap_tests::listed::generic"),
            ("tests.private", "leap_tests::listed::private::private"),
            ("tests.public", "leap_tests::listed::public"),
        ]
    );
}

fn qps(limit: f64) -> FlowRule {
    FlowRule::new(limit, Behavior::Reject).unwrap()
}

fn unmatched(registry: &Registry) -> Vec<String> {
    registry.unmatched_rules().iter().map(ToString::to_string).collect()
}

#[test]
fn rules_that_are_for_nobody_are_listed_by_source_in_their_order_with_what_may_be_meant() {
    let registry = Registry::new();
    assert_eq!(unmatched(&registry), [""; 0]);
    let limits = RuleSet::new()
        .named("misspelt", "orders.craete", qps(1.0))
        .named("fine", "orders.create", qps(1.0))
        .flow("ordres.*", qps(1.0))
        .flow("orders.*", qps(1.0))
        .flow("orders.create*", qps(1.0))
        .rule("*", IsolationRule::new(9))
        .rule("named", IsolationRule::new(9).with_mode(Mode::Off))
        .rule("Catalog::Cart::*", IsolationRule::new(9).with_mode(Mode::Shadow))
        .rule("cart::pay", IsolationRule::new(9))
        .rule("add", IsolationRule::new(9))
        .rule("refunds", IsolationRule::new(9))
        .rule("(overflow)", IsolationRule::new(9))
        .system(SystemRule::qps(1.0).unwrap());
    registry.source("limits.toml").load(limits).unwrap();
    registry.load(RuleSet::new().flow(r"a\*b", qps(1.0)).flow("never.caled", qps(1.0))).unwrap();
    assert_eq!(
        unmatched(&registry),
        [
            "`misspelt` of limits.toml: no resource is called `orders.craete`; did you mean `orders.create`?",
            "`ordres.*/flow/0` of limits.toml: no resource matches `ordres.*`; did you mean one that matches \
             `orders.create`?",
            "`named/isolation/0` of limits.toml: no resource is called `named`",
            "`Catalog::Cart::*/isolation/0@shadow` of limits.toml: no resource matches `Catalog::Cart::*`; did you \
             mean one that matches `catalog::Cart::add`?",
            "`cart::pay/isolation/0` of limits.toml: no resource is called `cart::pay`; did you mean `cart.pay`?",
            "`add/isolation/0` of limits.toml: no resource is called `add`; did you mean `catalog::Cart::add`?",
            "`refunds/isolation/0` of limits.toml: no resource is called `refunds`",
            r"`a\*b/flow/0` of loaded: no resource is called `a\*b`",
            "`never.caled/flow/0` of loaded: no resource is called `never.caled`; did you mean `never.called`?",
        ]
    );
    let first = &registry.unmatched_rules()[0];
    assert_eq!(
        (first.source(), first.rule().id(), first.name(), first.nearest(), first.is_associated()),
        ("limits.toml", Some("misspelt"), "orders.craete", Some("orders.create"), false)
    );
    // It is found by what it says, and another set has nothing that is for nobody.
    assert_eq!(registry.source("limits.toml").rules().find(&first.rule().to_string()), Some(first.rule()));
    registry.source("limits.toml").load(RuleSet::new().flow("orders.create", qps(1.0))).unwrap();
    registry.load(RuleSet::new()).unwrap();
    assert_eq!(unmatched(&registry), [""; 0]);
}

#[test]
fn what_may_be_meant_is_looked_for_with_the_first_hundred_rules() {
    let registry = Registry::new();
    let rules = (0..101).fold(RuleSet::new(), |rules, _| rules.flow("orders.craete", qps(1.0)));
    registry.load(rules).unwrap();
    let unmatched = registry.unmatched_rules();
    assert_eq!(unmatched.len(), 101);
    assert_eq!(unmatched.iter().filter(|rule| rule.nearest() == Some("orders.create")).count(), 100);
    assert_eq!(
        unmatched[100].to_string(),
        "`orders.craete/flow/100` of loaded: no resource is called `orders.craete`"
    );
}

#[test]
fn a_rule_that_is_associated_with_nobody_is_listed_too() {
    let registry = Registry::new();
    let with = |name: &'static str| qps(1.0).associated(name).unwrap();
    let rules = RuleSet::new()
        .flow("orders.create", with("stock.read"))
        .flow("orders.create", with("stock.raed"))
        .flow("orders.pay", with("a*"));
    registry.load(rules).unwrap();
    assert_eq!(
        unmatched(&registry),
        [
            "`orders.create/flow/1` of loaded: it is associated with `stock.raed`, which no resource is called; did \
             you mean `stock.read`?",
            "`orders.pay/flow/0` of loaded: no resource is called `orders.pay`",
            "`orders.pay/flow/0` of loaded: it is associated with `a*`, which no resource is called",
        ]
    );
    assert_eq!(
        serde_json::to_value(&registry.unmatched_rules()[0]).unwrap(),
        json!({
            "source": "loaded",
            "rule": "orders.create/flow/1",
            "resource": "orders.create",
            "name": "stock.raed",
            "is_associated": true,
            "nearest": "stock.read",
        })
    );
}

#[test]
fn a_resource_that_was_entered_by_name_is_one_from_its_first_call_on() {
    let registry = Registry::new();
    let rules = RuleSet::new()
        .flow("refunds", qps(0.0))
        .flow("users.*", qps(1.0))
        .flow("orders.create", qps(1.0).associated("gifts").unwrap());
    registry.load(rules).unwrap();
    let names =
        || -> Vec<_> { registry.unmatched_rules().iter().map(|rule| rule.name().to_owned()).collect() };
    assert_eq!(names(), ["refunds", "users.*", "gifts"]);
    assert!(registry.would_pass("refunds", 1).is_err());
    assert_eq!(names(), ["refunds", "users.*", "gifts"], "nobody has entered");
    assert!(registry.enter("refunds").is_err());
    assert_eq!(names(), ["users.*", "gifts"]);
    assert!(registry.enter("users.ann").is_ok());
    assert_eq!(names(), ["gifts"]);
    assert!(registry.enter("gifts").is_ok());
    assert_eq!(names(), [""; 0]);
    // Another registry knows nothing of that.
    let other = Registry::new();
    other.load(RuleSet::new().flow("refunds", qps(0.0))).unwrap();
    assert_eq!(unmatched(&other), ["`refunds/flow/0` of loaded: no resource is called `refunds`"]);
}

#[test]
fn rules_for_what_names_share_are_for_somebody_and_so_are_patterns_of_names_that_share() {
    let registry = Registry::builder().max_resources(1).build();
    let rules = RuleSet::new().flow("(overflow)", qps(9.0)).flow("users.*", qps(9.0));
    registry.load(rules).unwrap();
    assert_eq!(unmatched(&registry), ["`users.*/flow/0` of loaded: no resource matches `users.*`"]);
    assert!(registry.enter("users.ann").is_ok() && registry.enter("users.bob").is_ok());
    assert_eq!(registry.roster().overflowed(), 2);
    assert_eq!(unmatched(&registry), [""; 0]);
}
