//! The rows of single rules, each through the call site of a guarded function.

use std::time::Duration;

use leap_benches::measure::ALLOCATION_CALLS;
use leap_benches::work::{AppError, is_blocked, repeat, work};
use leap_runtime::{
    Behavior, Call, Check, Context, FlowRule, HotRule, RuleSet, SystemRule, Verdict, guarded, registry,
};

use crate::rows::{Row, strict_and_wide};

/// Keys that are the same for every call: a literal is refused.
const USER: u64 = 7;
const NAME: &str = "ada";

/// The guarded functions of one lane.
#[rustfmt::skip] // It moves the long attributes further to the right each time.
macro_rules! lane {
    ($lane:ident, $number:literal) => {
        mod $lane {
            use super::{AppError, NAME, USER, guarded, work};

            #[guarded(
                resource = concat!("warm-up/", $number),
                qps = 1_000_000_000,
                behavior = warm_up
            )]
            #[inline(never)]
            pub(super) fn warm_up(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("throttle/", $number),
                qps = 1_000_000_000,
                behavior = throttle
            )]
            #[inline(never)]
            pub(super) fn throttle(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("throttle-burst/", $number),
                qps = 1_000_000_000,
                behavior = throttle,
                burst = 100
            )]
            #[inline(never)]
            pub(super) fn throttle_burst(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("blocked-throttle/", $number),
                qps = 0.001,
                behavior = throttle,
                max_wait_ms = 0
            )]
            #[inline(never)]
            pub(super) fn blocked_throttle(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("queue/", $number), max_concurrency = 1_000, queue_ms = 100)]
            #[inline(never)]
            pub(super) fn queue(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("last-calls/", $number),
                error_ratio = 0.5,
                window_calls = 100
            )]
            #[inline(never)]
            pub(super) fn last_calls(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("priority/", $number), qps = 1_000_000_000, priority)]
            #[inline(never)]
            pub(super) fn priority(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("associated/", $number),
                qps = 1_000_000_000,
                associated = concat!("watched/", $number)
            )]
            #[inline(never)]
            pub(super) fn associated(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("watched/", $number))]
            #[inline(never)]
            pub(super) fn watched(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The check is added, see `all`.
            #[guarded(resource = concat!("custom/", $number))]
            #[inline(never)]
            pub(super) fn custom(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The system rule is loaded, see `rules`.
            #[guarded(resource = concat!("inbound/", $number), inbound)]
            #[inline(never)]
            pub(super) fn inbound(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("context/", $number))]
            #[inline(never)]
            pub(super) fn context(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("entrance/", $number), entrance = "front")]
            #[inline(never)]
            pub(super) fn entrance(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("from/", $number), origin = "vip")]
            #[inline(never)]
            pub(super) fn from(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("authority/", $number), origin = "vip", deny("batch"))]
            #[inline(never)]
            pub(super) fn authority(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The flow rules of the next three are loaded, see `rules`.
            #[guarded(resource = concat!("origin/", $number), origin = "vip")]
            #[inline(never)]
            pub(super) fn origin(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("other-origins/", $number), origin = "vip")]
            #[inline(never)]
            pub(super) fn other_origins(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("each-origin/", $number), origin = "vip")]
            #[inline(never)]
            pub(super) fn each_origin(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            // The hot rules of the next two are loaded, see `rules`.
            #[guarded(resource = concat!("hot-exact/", $number), hot(key = USER, name = "user"))]
            #[inline(never)]
            pub(super) fn hot_exact(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("hot-exact-1000/", $number), hot(key = x % 1_000, name = "user"))]
            #[inline(never)]
            pub(super) fn hot_exact_1000(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("hot-ring/", $number), hot(key = USER, qps = 1_000_000_000))]
            #[inline(never)]
            pub(super) fn hot_ring(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("hot-qps/", $number),
                qps = 1_000_000_000,
                hot(key = USER, qps = 1_000_000_000)
            )]
            #[inline(never)]
            pub(super) fn hot_qps(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("hot-text/", $number), hot(key = NAME, qps = 1_000_000_000))]
            #[inline(never)]
            pub(super) fn hot_text(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("hot-burst/", $number),
                hot(key = USER, qps = 1_000_000_000, burst = 100)
            )]
            #[inline(never)]
            pub(super) fn hot_burst(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("hot-throttle/", $number),
                hot(key = USER, qps = 1_000_000_000, behavior = throttle)
            )]
            #[inline(never)]
            pub(super) fn hot_throttle(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(resource = concat!("hot-concurrency/", $number), hot(key = USER, max_concurrency = 1_000))]
            #[inline(never)]
            pub(super) fn hot_concurrency(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("hot-except/", $number),
                hot(key = USER, qps = 1, except(7 => 1_000_000_000, 8 => 1, 9 => 1, "vip" => 1))
            )]
            #[inline(never)]
            pub(super) fn hot_except(x: u64) -> Result<u64, AppError> {
                work(x)
            }

            #[guarded(
                resource = concat!("blocked-hot/", $number),
                hot(key = USER, qps = 1, per_ms = 3_600_000)
            )]
            #[inline(never)]
            pub(super) fn blocked_hot(x: u64) -> Result<u64, AppError> {
                work(x)
            }
        }
    };
}

lane!(one, "1");
lane!(two, "2");

/// Lets every call pass.
struct Pass;

impl Check for Pass {
    fn check(&self, _call: &Call<'_>) -> Verdict {
        Verdict::Pass
    }
}

/// An exact rule for each value that is asked in full and never refuses while a call takes over 16 ns.
fn hot_exact() -> HotRule {
    HotRule::qps("user", 64.0).and_then(|rule| rule.per(Duration::from_micros(1))).expect("in range")
}

/// Adds the rules that an attribute cannot say.
pub(crate) fn rules(rules: RuleSet) -> RuleSet {
    let scoped = |scope: fn(FlowRule) -> Result<FlowRule, _>| {
        FlowRule::new(1e9, Behavior::Reject).and_then(scope).expect("the names are short")
    };
    let system = SystemRule::qps(1e9).expect("above zero");
    ["1", "2"].into_iter().fold(rules.system(system), |rules, lane| {
        rules
            .flow(format!("custom/{lane}"), strict_and_wide())
            .flow(format!("origin/{lane}"), scoped(|rule| rule.for_origin("vip")))
            .flow(format!("other-origins/{lane}"), scoped(FlowRule::for_other_origins))
            .flow(format!("each-origin/{lane}"), scoped(FlowRule::for_each_origin))
            .hot(format!("hot-exact/{lane}"), hot_exact())
            .hot(format!("hot-exact-1000/{lane}"), hot_exact())
    })
}

/// Lists of the most frequent values grow when they are first used, one every few hundred milliseconds. Nothing else does,
/// but the system's allocator answers for the whole process.
const SOME: u64 = 100;
/// One for each call.
const ONE_EACH: u64 = ALLOCATION_CALLS + SOME;

/// A row of a function that each lane has.
macro_rules! row {
    ($name:literal, $note:literal, $function:ident, $is_right:path) => {
        Row::of_rule($name, $note, |lane, n| match lane {
            0 => repeat(n, |x| $is_right(&one::$function(x))),
            _ => repeat(n, |x| $is_right(&two::$function(x))),
        })
    };
    ($name:literal, $note:literal, $function:ident) => {
        row!($name, $note, $function, Result::is_ok)
    };
}

/// All of them, ready to be called once [`rules`] are loaded.
pub(crate) fn all() -> Vec<Row> {
    registry().add_check("custom/*", Pass);
    // What is watched knows of it when whoever watches was called once.
    for watch in [one::associated, two::associated] {
        let _ = watch(0);
    }
    vec![
        row!("warm-up", "1 000 000 000 per 1 s in 100 buckets, cold: it stands at a third of that", warm_up),
        row!("throttle", "1 000 000 000 per 1 s: nobody waits", throttle),
        row!("throttle burst", "and 100 at once", throttle_burst),
        row!("blocked throttle", "1 per 1 000 s, no wait", blocked_throttle, is_blocked),
        row!("queue", "1 000 in flight, with a queue of 100 ms behind them", queue),
        row!("last calls", "a breaker on errors of the last 100 calls", last_calls),
        row!("priority", "`qps strict`, of calls that would wait for a place", priority),
        row!("associated", "1 000 000 000 per 1 s of another resource", associated),
        row!("watched", "that other resource, without a rule of its own", watched),
        row!("custom check", "`qps strict` and a check of the application's own that passes", custom),
        row!("system", "inbound, 1 000 000 000 per 1 s of the whole system", inbound).allocating(ONE_EACH),
        Row::of_rule(
            "context",
            "without a rule, in a context: entrance and call tree count too",
            |lane, n| {
                Context::new("front").scope(|| match lane {
                    0 => repeat(n, |x| one::context(x).is_ok()),
                    _ => repeat(n, |x| two::context(x).is_ok()),
                })
            },
        )
        .allocating(ONE_EACH),
        row!("entrance", "the same of a function that names its entrance itself", entrance)
            .allocating(3 * ALLOCATION_CALLS + SOME),
        row!("origin", "without a rule, by an origin: its share counts too", from).allocating(ONE_EACH),
        row!("authority", "and one other origin is denied", authority).allocating(ONE_EACH),
        row!("origin rule", "and 1 000 000 000 per 1 s of this origin", origin).allocating(ONE_EACH),
        row!("other-origin rule", "and the same of all origins without a rule", other_origins)
            .allocating(ONE_EACH),
        row!("each-origin rule", "and the same of each origin", each_origin).allocating(ONE_EACH),
        row!("hot exact", "64 per 1 µs of each value, loaded; one value", hot_exact).allocating(SOME),
        row!("hot exact 1000", "the same, 1 000 values in turn", hot_exact_1000).allocating(SOME),
        row!("hot ring", "1 000 000 000 per 1 s of each value in 10 buckets", hot_ring).allocating(SOME),
        row!("hot + qps", "and `qps strict` of all values together", hot_qps).allocating(SOME),
        row!("hot text", "`hot ring`, of a text", hot_text).allocating(SOME),
        row!("hot burst", "`hot ring` with a burst: a token bucket", hot_burst).allocating(SOME),
        row!("hot throttle", "`hot ring` at a pace: nobody waits", hot_throttle).allocating(SOME),
        row!("hot concurrency", "1 000 in flight of each value", hot_concurrency).allocating(ONE_EACH),
        row!("hot except", "a value of four that have limits of their own", hot_except).allocating(SOME),
        row!("blocked hot", "1 per hour of each value, used up", blocked_hot, is_blocked).allocating(SOME),
    ]
}
