//! Rules that watch another resource hold.

use leap_runtime::{Behavior, Cause, FlowRule, RuleSet, guarded};

use crate::{Answer, AppError, Bench, Told, Way, ms, told};

#[guarded("promises.read", rate(limit = 3, per_ms = 1_000, associated = "promises.write"))]
fn read() -> Answer {
    Ok(())
}

#[guarded("promises.write")]
fn write(way: Way) -> Answer {
    way.go_at_once()
}

#[test]
fn calls_are_blocked_while_the_other_resource_uses_up_the_limit_and_by_nothing_else() {
    let bench = Bench::new();
    bench.registry.scope(|| {
        // Its own calls do not count, and nobody has called the other resource yet.
        assert!((0..100).all(|_| read().is_ok()));
        // What passed there counts, however it ended.
        for (way, ended) in [(Way::Ends, Told::Ended), (Way::Fails, Told::Failed), (Way::Ends, Told::Ended)] {
            assert_eq!(told(&read()), Told::Ended);
            assert_eq!(told(&write(way)), ended);
        }
        let Err(AppError::Blocked(blocked)) = read() else { panic!("three writes leave no room") };
        assert_eq!((blocked.resource(), blocked.cause()), ("promises.read", Cause::Flow));
        assert!((0..100).all(|_| write(Way::Ends).is_ok()), "the other resource has no rule");

        // In buckets of 10 ms, whose last one has to leave too.
        assert_eq!(blocked.retry_after(), Some(ms(1_010)));
        bench.at(1_009);
        assert_eq!(told(&read()), Told::Blocked);
        bench.at(1_010);
        assert_eq!(told(&read()), Told::Ended);
    });
}

fn limit(limit: f64) -> FlowRule {
    FlowRule::new(limit, Behavior::Reject).unwrap()
}

#[test]
fn a_call_that_is_blocked_there_does_not_count() {
    let bench = Bench::with(
        RuleSet::new().flow("writes", limit(1.0)).flow("reads", limit(2.0).associated("writes").unwrap()),
    );
    let passes = |resource: &str| bench.registry.enter(resource).is_ok();
    let writes = (0..10).filter(|_| passes("writes")).count();
    assert_eq!((writes, passes("reads")), (1, true));
}

#[test]
fn a_loaded_rule_watches_from_its_load_on_and_no_longer_than_it_stands() {
    let bench = Bench::new();
    let passes = |resource: &str| bench.registry.enter(resource).is_ok();
    assert!(passes("writes") && passes("reads"));
    let watching = RuleSet::new().flow("reads", limit(1.0).associated("writes").unwrap());
    bench.registry.load(watching).unwrap();
    assert!(passes("reads") && passes("writes") && !passes("reads"));
    bench.registry.load(RuleSet::new()).unwrap();
    assert!(passes("reads"));
}

#[test]
fn two_resources_may_watch_each_other() {
    let watching = |other: &'static str| limit(1.0).associated(other).unwrap();
    let bench = Bench::with(RuleSet::new().flow("one", watching("two")).flow("two", watching("one")));
    let passes = |resource: &str| bench.registry.enter(resource).is_ok();
    assert!(passes("one") && !passes("two") && passes("one"));
    bench.at(2_000);
    assert!(passes("two") && !passes("one") && passes("two"));
}
