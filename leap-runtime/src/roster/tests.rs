//! Names that rules match by patterns, which share a resource for each set of them.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::check::system::HostProbe;
use crate::clock::ManualClock;
use crate::environment::{AnyClock, Settings};
use crate::event::Observer;
use crate::rule::pattern::overflow_of;

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
        let patterns: Vec<_> = patterns.iter().map(|pattern| Arc::from(*pattern)).collect();
        let shared = || overflow_of(&patterns);
        let looked = self.roster.look(name, shared).map(|resource| resource.name().to_string());
        (self.roster.enter(name, shared, self.make()).name().to_string(), looked)
    }

    /// Enters and stays.
    fn hold(&self, name: &str) -> Arc<Resource> {
        self.roster.enter(name, || overflow_of(&[]), self.make())
    }

    fn shared(&self, name: &str, patterns: &[&str]) -> String {
        self.enter(name, patterns).0
    }

    fn queue(&self) -> Vec<String> {
        self.roster.queue().iter().map(ToString::to_string).collect()
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
    for off in ["c", "d"] {
        world.roster.environment.switch_resource(off, false);
    }
    assert_eq!(world.shared("c", &[]), "c");
    assert!(world.roster.look("d", || panic!("it would be a new one")).is_none());
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
fn names_make_room_in_the_order_in_which_they_came_and_who_stays_is_asked_after_all_others() {
    let world = World::new(3);
    let [_, held, _] = ["a", "b", "c"].map(|name| world.hold(name));
    let enter = |new: &str| {
        world.clock.advance(REST);
        assert_eq!(world.shared(new, &[]), new);
        world.queue().join(" ")
    };
    assert_eq!([enter("d"), enter("e")], ["b c d", "d b e"]);
    drop(held);
    assert_eq!([enter("f"), enter("g"), enter("h")], ["b e f", "e f g", "f g h"]);
}

#[test]
fn the_queue_has_each_name_once_also_where_threads_make_room_at_once() {
    let world = World::new(20);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let world = &world;
            scope.spawn(move || {
                for i in 0..2_000 {
                    // Some come to a name together, some by themselves.
                    world.shared(&format!("{}", (i * (thread % 2 + 1)) % 50), &[]);
                    world.clock.advance(REST / 10);
                }
            });
        }
    });
    let mut queued = world.queue();
    queued.sort_unstable();
    let there: Vec<_> = world.roster.all().iter().map(|resource| resource.name().to_string()).collect();
    assert_eq!(queued, there);
    let stats = world.roster.stats();
    assert_eq!(stats.resources() + stats.shared(), there.len(), "{stats}");
    assert!(stats.resources() <= 20 && stats.evicted() > 0, "{stats}");
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
    let panics = || world.roster.enter("a", || panic!("there is room"), |_| panic!("no clock"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(world.roster.stats().resources(), 0);
    assert_eq!(world.shared("a", &[]), "a");
}

#[test]
fn one_search_looks_at_a_bounded_number_and_the_next_goes_on_behind_it() {
    let world = World::new(2_000);
    let held: Vec<_> = (0..1_999).map(|i| world.hold(&format!("{i}"))).collect();
    world.shared("at rest", &[]);
    world.clock.advance(REST);
    // The last of 2 000, of which a search looks at 16.
    let tries = (0..2_000).take_while(|i| world.shared(&format!("new {i}"), &[]) == OVERFLOW).count();
    assert_eq!(tries, 1_999 / 16);
    assert_eq!((world.roster.stats().evicted(), world.roster.get("at rest").is_none()), (1, true));
    drop(held);
}

#[test]
fn a_shared_resource_leaves_when_it_is_at_rest_and_makes_no_room() {
    let world = World::new(1);
    let held = world.hold("held");
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
