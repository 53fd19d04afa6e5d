//! What stays of many calls on the heap, which is nothing: of those whose events nobody keeps, and of new names at the cap.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leap_runtime::{
    Behavior, Blocked, BreakerRule, FlowRule, HotRule, ManualClock, Observer, Outcome, Overflow, Registry,
    RuleError, RuleSet, Transition,
};

use crate::alloc;

/// Bytes live, registry and all, after half of the calls and after all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// Which calls.
    pub what: &'static str,
    /// How many.
    pub calls: u64,
    /// After half.
    pub early: usize,
    /// After all.
    pub late: usize,
    /// What observers were told meanwhile.
    pub told: Told,
}

/// How many events there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Calls that were blocked.
    pub blocks: u64,
    /// Changes of state of breakers.
    pub transitions: u64,
    /// Names that found no room, or had room made for them for the first time.
    pub overflows: u64,
}

/// By how much more may be live after all calls than after half: what maps and lists hold in reserve. In 50 000 calls there
/// are thousands of transitions and tens of thousands of blocks, of which not even a word each has room in that.
pub const SLACK: usize = 32 * 1024;

impl Flat {
    /// Whether no more is live than [`SLACK`] allows.
    pub fn is_flat(&self) -> bool {
        self.late <= self.early + SLACK
    }
}

/// Counts what it is told and keeps none of it, as if nobody ever fetched it.
#[derive(Debug, Default)]
struct Unread {
    blocks: AtomicU64,
    transitions: AtomicU64,
    overflows: AtomicU64,
}

impl Unread {
    fn told(&self) -> Told {
        let [blocks, transitions, overflows] =
            [&self.blocks, &self.transitions, &self.overflows].map(|counter| counter.load(Relaxed));
        Told { blocks, transitions, overflows }
    }
}

impl Observer for Unread {
    fn on_block(&self, _: &Blocked) {
        self.blocks.fetch_add(1, Relaxed);
    }

    fn on_transition(&self, _: &Transition<'_>) {
        self.transitions.fetch_add(1, Relaxed);
    }

    fn on_overflow(&self, _: &Overflow<'_>) {
        self.overflows.fetch_add(1, Relaxed);
    }
}

const RESOURCES: [&str; 10] = [
    "orders.create",
    "orders.read",
    "orders.cancel",
    "stock.read",
    "stock.reserve",
    "stock.release",
    "prices.read",
    "users.read",
    "users.create",
    "mail.send",
];

/// Each has a limit that is reached, a breaker that opens and closes, and a limit for each user, of whom there are more
/// than are kept.
fn rules() -> Result<RuleSet, RuleError> {
    let limit = FlowRule::new(80.0, Behavior::Reject)?;
    let breaker = BreakerRule::error_ratio(0.5)?.open_for(Duration::from_millis(100))?;
    let each_user = HotRule::qps("user", 5.0)?.with_max_keys(100)?;
    Ok(RESOURCES.into_iter().fold(RuleSet::new(), |set, name| {
        set.flow(name, limit.clone()).breaker(name, breaker).hot(name, each_user.clone())
    }))
}

/// Makes `calls` calls, a millisecond apart, of ten resources from more origins and users than have numbers of their own;
/// half of the time they fail. Observers are told of blocks and transitions, and nobody keeps what they are told.
#[expect(clippy::missing_panics_doc, reason = "it does not")]
pub fn events_that_nobody_consumes(calls: u64) -> Flat {
    // More than the 200 of which a resource keeps numbers.
    let origins: Vec<String> = (0..211).map(|i| format!("origin {i}")).collect();
    let empty = alloc::live_bytes();
    let (unread, clock) = (Arc::new(Unread::default()), ManualClock::new());
    let registry = Registry::builder().clock(clock.clone()).observer(Arc::clone(&unread)).build();
    registry.load(rules().expect("in range")).expect("the names are short");
    let mut early = 0;
    for i in 0..calls {
        if i == calls / 2 {
            early = alloc::live_bytes() - empty;
        }
        clock.advance(Duration::from_millis(1));
        // Primes, so that each resource meets each origin and user.
        let (origin, user) = (&origins[index(i, 211)], i % 1_009);
        let call = registry.enter_with(RESOURCES[index(i, 10)]).origin(origin).key("user", user);
        // A second well and a second ill, in which breakers are probed time and again.
        let outcome = if i / 1_000 % 2 == 0 { Outcome::Success } else { Outcome::Exception };
        if let Ok(entry) = call.enter() {
            entry.end(outcome);
        }
    }
    let late = alloc::live_bytes() - empty;
    Flat { what: "calls whose events nobody consumes", calls, early, late, told: unread.told() }
}

fn index(i: u64, n: u64) -> usize {
    usize::try_from(i % n).expect("a small number")
}

/// Enters `names` new names, one after another, of a registry with room for 1 000: with `rested` those before are at rest
/// when new ones come and make room, without it none is and all share one resource.
#[expect(clippy::missing_panics_doc, reason = "it does not")]
pub fn names_at_the_cap(names: u64, rested: bool) -> Flat {
    const ROOM: u64 = 1_000;
    let empty = alloc::live_bytes();
    let (unread, clock) = (Arc::new(Unread::default()), ManualClock::new());
    let registry = Registry::builder()
        .clock(clock.clone())
        .observer(Arc::clone(&unread))
        .max_resources(usize::try_from(ROOM).expect("a small number"))
        .build();
    let mut early = 0;
    for i in 0..names {
        if i == names / 2 {
            early = alloc::live_bytes() - empty;
        }
        if rested && i % (ROOM / 2) == 0 {
            // Statistics tell of a call for a minute.
            clock.advance(Duration::from_secs(61));
        }
        // Of one length.
        if let Ok(entry) = registry.enter(&format!("user {i:>9}")) {
            entry.end(Outcome::Success);
        }
    }
    let late = alloc::live_bytes() - empty;
    let what =
        if rested { "new names at the cap, some at rest" } else { "new names at the cap, none at rest" };
    Flat { what, calls: names, early, late, told: unread.told() }
}
