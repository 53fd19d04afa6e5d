//! The global registry, in a process of its own.

use leap_runtime::{Behavior, Blocked, FlowRule, ManualClock, Registry, RuleSet, guarded, registry};

#[guarded("greet")]
fn greet() -> Result<(), Blocked> {
    Ok(())
}

#[test]
fn guarded_functions_use_the_registry_that_was_installed_and_no_other_can_follow() {
    let installed = Registry::builder().clock(ManualClock::new()).build();
    installed.install().unwrap();
    installed.load(RuleSet::new().flow("greet", FlowRule::new(1.0, Behavior::Reject).unwrap())).unwrap();
    assert!(greet().is_ok());
    assert!(greet().is_err());
    assert_eq!(registry().stats("greet").unwrap().totals().passed(), 1);

    let late = Registry::new();
    assert!(late.install().unwrap_err().to_string().contains("a global registry already"));
    late.scope(|| assert!(greet().is_ok()));
    assert!(greet().is_err());
}
