//! The global registry, in a process of its own.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::thread;

use leap_runtime::{Behavior, Blocked, FlowRule, ManualClock, Registry, RuleSet, guarded, registry};

static INSTALLED: LazyLock<Registry> = LazyLock::new(|| {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    registry.install().expect("it is the first");
    registry
});

#[guarded("greet")]
fn greet() -> Result<(), Blocked> {
    Ok(())
}

#[test]
fn guarded_functions_use_the_registry_that_was_installed_and_no_other_can_follow() {
    INSTALLED.load(RuleSet::new().flow("greet", FlowRule::new(1.0, Behavior::Reject).unwrap())).unwrap();
    assert!(greet().is_ok());
    assert!(greet().is_err());
    assert_eq!(registry().stats("greet").unwrap().totals().passed(), 1);

    let late = Registry::new();
    assert!(late.install().unwrap_err().to_string().contains("a global registry already"));
    late.scope(|| assert!(greet().is_ok()));
    assert!(greet().is_err());
}

#[guarded("at_end", qps = 0)]
async fn at_end() -> Result<(), Blocked> {
    Ok(())
}

#[test]
fn a_call_that_is_blocked_while_its_thread_ends_is_answered() {
    fn is_answered() -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        matches!(pin!(at_end()).poll(context), Poll::Ready(Err(_)))
    }
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            assert!(is_answered());
        }
    }
    thread_local!(static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) });

    LazyLock::force(&INSTALLED);
    let thread = thread::spawn(|| {
        // Thread-locals go in the order opposite to that in which they were first used: this one after all of leap's.
        AT_END.set(Some(AtEnd));
        assert!(is_answered());
    });
    thread.join().unwrap();
    // No scope is left on a thread that is ending: this is the global one.
    assert_eq!(INSTALLED.stats("at_end").unwrap().totals().blocked(), 2);
}
