//! Names that rules match by patterns, which share a resource for each set of them.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::check::system::HostProbe;
use crate::clock::ManualClock;
use crate::environment::{AnyClock, Settings};
use crate::event::Observer;

const REST: Duration = Duration::from_secs(62);

#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observer for Told {
    fn on_overflow(&self, overflow: &Overflow<'_>) {
        self.0.lock().unwrap().push(overflow.to_string());
    }
}

struct World {
    roster: Roster,
    clock: ManualClock,
    told: Arc<Told>,
}

impl World {
    fn new(max: usize) -> Self {
        let (clock, told) = (ManualClock::new(), Arc::new(Told::default()));
        let environment = Environment::new(Settings {
            clock: AnyClock::Other(Arc::new(clock.clone())),
            timer: None,
            second_buckets: 10,
            observers: vec![Arc::clone(&told) as _],
            probe: Arc::new(HostProbe::new()),
            hides_values: false,
        });
        Self { roster: Roster::new(max, Arc::new(environment)), clock, told }
    }

    fn make(&self) -> impl Fn(Arc<str>) -> Resource + '_ {
        |name| Resource::new(name, Arc::clone(&self.roster.environment))
    }

    /// The name of the resource that a call enters, and of the one that it was told it would.
    fn enter(&self, name: &str, patterns: &[&str]) -> (String, Option<String>) {
        let place = || Place::Matched(patterns.iter().map(|pattern| Arc::from(*pattern)).collect());
        let looked = self.roster.look(name, place).map(|resource| resource.name().to_string());
        (self.roster.enter(name, place, self.make()).name().to_string(), looked)
    }

    fn shared(&self, name: &str, patterns: &[&str]) -> String {
        self.enter(name, patterns).0
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.0.lock().unwrap())
    }
}

#[test]
fn names_beyond_the_cap_share_a_resource_for_each_set_of_patterns_and_each_is_told_of_once() {
    let world = World::new(2);
    assert_eq!(world.shared("orders.1", &["orders.*"]), "orders.1");
    assert_eq!(world.shared("orders.2", &["orders.*"]), "orders.2");
    for _ in 0..3 {
        assert_eq!(world.shared("orders.1", &["orders.*"]), "orders.1");
        assert_eq!(world.shared("orders.3", &["orders.*"]), "(overflow) orders.*");
        assert_eq!(world.shared("orders.4", &["orders.*"]), "(overflow) orders.*");
        assert_eq!(
            world.shared("orders.x.5", &["orders.x.*", "orders.*"]),
            "(overflow) orders.x.* + orders.*"
        );
        assert_eq!(world.shared("stock.6", &[]), "(overflow)");
    }
    let full = "there are 2 resources, the most there may be";
    let told = [
        format!("{full}: `orders.3` shares `(overflow) orders.*`"),
        format!("{full}: `orders.x.5` shares `(overflow) orders.x.* + orders.*`"),
        format!("{full}: `stock.6` shares `(overflow)`"),
    ];
    assert_eq!(world.told(), told);
    let stats = world.roster.stats();
    assert_eq!((stats.resources(), stats.shared(), stats.overflowed(), stats.evicted()), (2, 3, 12, 0));
}

#[test]
fn a_name_that_is_counted_on_has_a_resource_of_its_own_beyond_the_cap() {
    let world = World::new(1);
    assert_eq!(world.shared("a", &[]), "a");
    assert_eq!(world.roster.own("b", world.make()).name().as_ref(), "b");
    assert_eq!(world.roster.enter("c", || Place::Own, world.make()).name().as_ref(), "c");
    assert!(world.roster.look("d", || Place::Own).is_none(), "it would be a new one");
    assert_eq!((world.roster.stats().resources(), world.told().len()), (3, 0));
}

#[test]
fn what_a_call_is_told_it_would_enter_is_what_it_enters() {
    let world = World::new(1);
    let new = |name: &str| (name.to_owned(), None);
    let known = |name: &str| (name.to_owned(), Some(name.to_owned()));
    assert_eq!(world.enter("a", &[]), new("a"));
    assert_eq!(world.enter("a", &[]), known("a"));
    assert_eq!(world.enter("b", &[]), new("(overflow)"));
    assert_eq!(world.enter("b", &[]), known("(overflow)"));
    assert_eq!(world.enter("", &[]), known("(overflow)"));
    world.clock.advance(REST);
    assert_eq!(world.enter("b", &[]), new("b"), "one at rest makes room");
    assert_eq!(world.enter("c", &["*"]), new("(overflow) *"), "but not for two");
}

#[test]
fn a_roster_beyond_its_cap_shrinks_and_each_place_is_given_once() {
    let world = World::new(4);
    for i in 0..9 {
        world.roster.own(&format!("own {i}"), world.make());
    }
    world.clock.advance(REST);
    for i in 0..20 {
        world.shared(&format!("new {i}"), &[]);
    }
    let stats = world.roster.stats();
    assert_eq!(stats.resources() + stats.shared(), world.roster.all().len());
    assert_eq!((stats.resources(), stats.shared()), (4, 1), "{stats}");
    assert_eq!(9 + 20 - stats.overflowed() - stats.evicted(), 4, "{stats}");
}

#[test]
fn a_place_whose_resource_was_not_made_is_free_again() {
    let world = World::new(1);
    let place = || Place::Matched(vec![]);
    let panics = || world.roster.enter("a", place, |_| panic!("no clock"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(world.roster.stats().resources(), 0);
    assert_eq!(world.shared("a", &[]), "a");
}

#[test]
fn one_search_looks_at_a_bounded_number_and_the_next_goes_on_behind_it() {
    let world = World::new(2_000);
    let held: Vec<_> = (0..1_999)
        .map(|i| world.roster.enter(&format!("{i}"), || Place::Matched(vec![]), world.make()))
        .collect();
    world.shared("at rest", &[]);
    world.clock.advance(REST);
    // Somewhere among 2 000, of which a search looks at 16 in the name's own shard.
    let tries = (0..2_000).take_while(|i| world.shared(&format!("new {i}"), &[]) == OVERFLOW).count();
    assert!(tries < 1_900, "{tries}");
    assert_eq!((world.roster.stats().evicted(), world.roster.get("at rest").is_none()), (1, true));
    drop(held);
}

#[test]
fn a_shared_resource_leaves_when_it_is_at_rest_and_makes_no_room() {
    let world = World::new(1);
    let held = world.roster.enter("held", || Place::Matched(vec![]), world.make());
    for i in 0..5 {
        world.shared("new", &[&format!("pattern {i}")]);
    }
    assert_eq!((world.roster.stats().shared(), world.told().len()), (5, 5));
    world.clock.advance(REST);
    assert_eq!(world.shared("new", &["pattern 7"]), "(overflow) pattern 7");
    let stats = world.roster.stats();
    assert_eq!((stats.resources(), stats.shared(), stats.evicted()), (1, 1, 0));
    assert_eq!(world.shared("new", &["pattern 2"]), "(overflow) pattern 2");
    assert_eq!(world.told().len(), 1, "of pattern 2 it was told before");
    drop(held);
}
