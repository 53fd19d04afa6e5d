//! The rows of the table: what is called, and how it should end.

use std::pin::pin;
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, is_blocked, repeat, work};
use leap_benches::{floor, measure};
use leap_runtime::{
    Behavior, Clock, FlowRule, LeapArray, Limiter, Precision, Registry, RuleSet, SystemClock, guarded,
};

use crate::rules;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
    /// Makes so many calls in a lane, and tells how many ended otherwise than they should. Two lanes share no
    /// resource.
    pub(crate) calls: fn(lane: usize, n: u64) -> u64,
    /// Of a single rule: such rows stand under a heading of their own.
    pub(crate) is_of_rule: bool,
    /// The most allocations in [`ALLOCATION_CALLS`](measure::ALLOCATION_CALLS) calls.
    pub(crate) allocations: u64,
}

impl Row {
    /// A row of calls that allocate nothing.
    pub(crate) const fn new(name: &'static str, note: &'static str, calls: fn(usize, u64) -> u64) -> Self {
        Self { name, note, calls, is_of_rule: false, allocations: 0 }
    }

    /// As [`new`](Self::new), of a single rule.
    pub(crate) const fn of_rule(
        name: &'static str,
        note: &'static str,
        calls: fn(usize, u64) -> u64,
    ) -> Self {
        Self { is_of_rule: true, ..Self::new(name, note, calls) }
    }

    pub(crate) const fn allocating(self, at_most: u64) -> Self {
        Self { allocations: at_most, ..self }
    }
}

impl measure::Row for Row {
    fn calls(&self, lane: usize, n: u64) -> u64 {
        (self.calls)(lane, n)
    }
}

/// Polls a future that never waits.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the future is to be built and polled in one place, as by an executor's task"
)]
fn poll_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// The guarded functions of one lane. A lane has its own functions, because a call site has one resource.
#[rustfmt::skip] // It moves the long attributes further to the right each time.
macro_rules! lane {
    ($lane:ident, $number:literal) => {
        mod $lane {
            use super::{AppError, guarded, work};

            #[inline(never)]
            pub(super) fn plain(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("statistics/", $number))]
            #[inline(never)]
            pub(super) fn statistics(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The flow rule is loaded, see `rules`.
            #[guarded(resource = concat!("exact/", $number))]
            #[inline(never)]
            pub(super) fn exact(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("strict/", $number), qps = 1_000_000_000, precision = strict)]
            #[inline(never)]
            pub(super) fn strict(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The flow rule is loaded, see `rules`.
            #[guarded(resource = concat!("exact-slow/", $number), slow_rt_ms = 1_000, slow_ratio = 0.5)]
            #[inline(never)]
            pub(super) fn exact_slow(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("strict-slow/", $number),
                qps = 1_000_000_000,
                precision = strict,
                slow_rt_ms = 1_000,
                slow_ratio = 0.5
            )]
            #[inline(never)]
            pub(super) fn strict_slow(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("isolated/", $number), max_concurrency = 1_000)]
            #[inline(never)]
            pub(super) fn isolated(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("blocked-exact/", $number),
                rate(limit = 1_000, per_ms = 3_600_000, precision = exact)
            )]
            #[inline(never)]
            pub(super) fn blocked_exact(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("blocked-strict/", $number),
                rate(limit = 1_000, per_ms = 3_600_000, precision = strict)
            )]
            #[inline(never)]
            pub(super) fn blocked_strict(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("blocked-open/", $number),
                error_count = 0,
                min_calls = 1,
                open_ms = 3_600_000
            )]
            #[inline(never)]
            pub(super) fn blocked_open(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("strict-2/", $number),
                qps = 1_000_000_000,
                precision = strict,
                buckets = 2
            )]
            #[inline(never)]
            pub(super) fn strict_2(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("strict-1000/", $number),
                qps = 1_000_000_000,
                precision = strict,
                buckets = 1_000
            )]
            #[inline(never)]
            pub(super) fn strict_1000(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            pub(super) async fn async_plain(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("async-statistics/", $number))]
            pub(super) async fn async_statistics(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The flow rule is loaded, see `rules`.
            #[guarded(resource = concat!("async-exact-slow/", $number), slow_rt_ms = 1_000, slow_ratio = 0.5)]
            pub(super) async fn async_exact_slow(x: u64) -> Result<u64, AppError> {
                work(x)
            }
        }
    };
}

lane!(one, "1");
lane!(two, "2");

const EXACT_NOTE: &str = "1 024 per 10 µs, loaded: a log of 1 024 that calls as fast as these never fill";
const STRICT_NOTE: &str = "1 000 000 000 per 1 s in 100 buckets";

/// An exact rule that is asked in full and never refuses while a call takes over 10 ns.
fn exact_and_wide() -> FlowRule {
    FlowRule::new(1_024.0, Behavior::Reject)
        .and_then(|rule| rule.with_precision(Precision::Exact))
        .and_then(|rule| rule.per(Duration::from_micros(10)))
        .expect("a log of 1 024 and an interval above zero")
}

/// A rule in the ring that never refuses.
pub(crate) fn strict_and_wide() -> FlowRule {
    FlowRule::new(1e9, Behavior::Reject)
        .and_then(|rule| rule.with_precision(Precision::Strict))
        .expect("100 buckets divide a second")
}

/// The rules that an attribute cannot say: its shortest interval is a millisecond.
fn rules() -> RuleSet {
    ["exact/1", "exact/2", "exact-slow/1", "exact-slow/2", "async-exact-slow/1", "async-exact-slow/2"]
        .into_iter()
        .fold(RuleSet::new(), |rules, name| rules.flow(name, exact_and_wide()))
}

/// A registry with so many resources under one rule each, and their names.
fn registry_of(n: usize) -> (Registry, Vec<String>) {
    let names: Vec<String> = (0..n).map(|i| format!("orders.of.customer.{i}")).collect();
    let rules = names.iter().fold(RuleSet::new(), |rules, name| rules.flow(name, strict_and_wide()));
    let registry = Registry::new();
    registry.load(rules).expect("the names are short");
    (registry, names)
}

/// A registry with two resources; each lane calls one.
static TWO: LazyLock<(Registry, Vec<String>)> = LazyLock::new(|| registry_of(2));
/// Of each lane.
static THOUSAND: LazyLock<[(Registry, Vec<String>); 2]> =
    LazyLock::new(|| [registry_of(1_000), registry_of(1_000)]);

#[inline(always)]
#[expect(clippy::inline_always, reason = "as `repeat`")]
fn by_name(registry: &Registry, name: &str, x: u64) -> Result<u64, AppError> {
    registry.enter(name)?.run(|| work(x))
}

fn limiter_calls(limiters: &Lanes<Limiter>, lane: usize, n: u64) -> u64 {
    let limiter = limiters.of(lane);
    repeat(n, |_| limiter.try_acquire(1).is_ok())
}

/// A row of a function that each lane has.
macro_rules! row {
    ($name:literal, $note:expr, $function:ident, $is_right:path) => {
        Row::new($name, $note, |lane, n| match lane {
            0 => repeat(n, |x| $is_right(&one::$function(x))),
            _ => repeat(n, |x| $is_right(&two::$function(x))),
        })
    };
    ($name:literal, $note:expr, async $function:ident) => {
        Row::new($name, $note, |lane, n| match lane {
            0 => repeat(n, |x| matches!(poll_once(one::$function(x)), Some(Ok(_)))),
            _ => repeat(n, |x| matches!(poll_once(two::$function(x)), Some(Ok(_)))),
        })
    };
}

/// All rows, ready to be called.
pub(crate) fn all() -> Vec<Row> {
    leap_runtime::registry().load(rules::rules(rules())).expect("the names are short");
    for trip in [one::blocked_open, two::blocked_open] {
        // One failure opens the breaker for an hour.
        let _ = trip(u64::MAX);
    }
    let mut rows = vec![
        Row::new(
            floor::NAME,
            "the plain function, two raw clock reads, six fetch_add of its own thread",
            floor::calls,
        ),
        Row::new("clock", "the runtime's clock, read twice", floor::clock_calls),
        row!("plain", "the function unguarded", plain, Result::is_ok),
        row!("statistics", "guarded, without a rule", statistics, Result::is_ok),
        row!("qps exact", EXACT_NOTE, exact, Result::is_ok),
        row!("qps strict", STRICT_NOTE, strict, Result::is_ok),
        row!("qps+slow exact", "and a breaker on slow calls (over 1 s)", exact_slow, Result::is_ok),
        row!("qps+slow strict", "and a breaker on slow calls (over 1 s)", strict_slow, Result::is_ok),
        row!("isolation", "1 000 in flight", isolated, Result::is_ok),
        row!("blocked exact", "1 000 per hour, used up", blocked_exact, is_blocked),
        row!("blocked strict", "1 000 per hour in 100 buckets, used up", blocked_strict, is_blocked),
        row!("blocked breaker", "open for an hour", blocked_open, is_blocked),
        row!("async plain", "an async function that never waits, polled once", async async_plain),
        row!("async statistics", "guarded, without a rule", async async_statistics),
        row!("async qps+slow exact", "guarded, with the rules of `qps+slow exact`", async async_exact_slow),
        row!("buckets 2", "`qps strict` with 2 buckets", strict_2, Result::is_ok),
        row!("buckets 100", "the same function as `qps strict`", strict, Result::is_ok),
        row!("buckets 1000", "`qps strict` with 1 000 buckets", strict_1000, Result::is_ok),
        Row::new("by name", "Registry::enter(name), the rule of `qps strict`", |lane, n| {
            let (registry, names) = &*TWO;
            repeat(n, |x| by_name(registry, &names[lane], x).is_ok())
        }),
        Row::new("by name 1 of 1000", "the same, in a registry of 1 000 resources", |lane, n| {
            let (registry, names) = &THOUSAND[lane];
            repeat(n, |x| by_name(registry, &names[0], x).is_ok())
        }),
        Row::new(
            "by name 1000 in turn",
            "1 000 resources one after another: what the processor's caches add",
            |lane, n| {
                let (registry, names) = &THOUSAND[lane];
                let mut in_turn = names.iter().cycle();
                repeat(n, |x| in_turn.next().is_some_and(|name| by_name(registry, name, x).is_ok()))
            },
        ),
        Row::new(
            "limiter exact",
            "Limiter alone, the rule of `qps exact`; two lanes are two limiters",
            |lane, n| {
                static LIMITERS: LazyLock<Lanes<Limiter>> =
                    LazyLock::new(|| Lanes::new(|_| Limiter::new(exact_and_wide())));
                limiter_calls(&LIMITERS, lane, n)
            },
        ),
        Row::new("limiter strict", "Limiter alone, the rule of `qps strict`", |lane, n| {
            static LIMITERS: LazyLock<Lanes<Limiter>> =
                LazyLock::new(|| Lanes::new(|_| Limiter::new(strict_and_wide())));
            limiter_calls(&LIMITERS, lane, n)
        }),
        Row::new("leap array", "LeapArray::add alone, 100 buckets, with one clock read", |lane, n| {
            static ARRAYS: LazyLock<(SystemClock, Lanes<LeapArray>)> = LazyLock::new(|| {
                let array =
                    |_| LeapArray::new(100, Duration::from_secs(1)).expect("100 buckets divide a second");
                (SystemClock::new(), Lanes::new(array))
            });
            let (clock, arrays) = &*ARRAYS;
            let array = arrays.of(lane);
            repeat(n, |_| {
                array.add(clock.now(), 1);
                true
            })
        }),
    ];
    rows.extend(rules::all());
    rows
}
