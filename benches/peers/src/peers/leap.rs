//! leap itself.

use std::sync::LazyLock;
use std::time::Duration;

use leap_benches::floor;
use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, is_blocked, repeat, work};
use leap_runtime::{Behavior, FlowRule, Limiter, Precision, Refused, RuleSet, guarded, registry};

use crate::row::{Part, Row};
use crate::runtime;

pub(crate) const FLOOR: &str = floor::NAME;
pub(crate) const GUARDED: &str = "leap: QPS + slow-call breaker, exact";
pub(crate) const BLOCKED: &str = "leap: blocked, exact";

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

            // The exact rules that pass are loaded, see `rules`.
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

            #[guarded(resource = concat!("slow/", $number), slow_rt_ms = 1_000, slow_ratio = 0.5)]
            #[inline(never)]
            pub(super) fn slow(x: u64) -> Result<u64, AppError> {
                work(x)
            }

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

            #[guarded(
                resource = concat!("async-exact-slow/", $number),
                slow_rt_ms = 1_000,
                slow_ratio = 0.5
            )]
            pub(super) async fn async_exact_slow(x: u64) -> Result<u64, AppError> {
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
                resource = concat!("blocked-open/", $number),
                error_count = 0,
                min_calls = 1,
                open_ms = 3_600_000
            )]
            #[inline(never)]
            pub(super) fn blocked_open(x: u64) -> Result<u64, AppError> {
                work(x)
            }
        }
    };
}

lane!(one, "1");
lane!(two, "2");

/// A rule that is asked in full and never refuses while a call takes over 10 ns.
fn exact_and_wide() -> FlowRule {
    rule(1_024.0, Precision::Exact, Duration::from_micros(10))
}

fn rule(limit: f64, precision: Precision, interval: Duration) -> FlowRule {
    FlowRule::new(limit, Behavior::Reject)
        .and_then(|rule| rule.with_precision(precision))
        .and_then(|rule| rule.per(interval))
        .expect("a log of 1 024, or buckets that divide the interval")
}

/// The rules that an attribute cannot say: its shortest interval is a millisecond.
fn rules() -> RuleSet {
    let names =
        ["exact/1", "exact/2", "exact-slow/1", "exact-slow/2", "async-exact-slow/1", "async-exact-slow/2"];
    names.into_iter().fold(RuleSet::new(), |rules, name| rules.flow(name, exact_and_wide()))
}

#[inline(never)]
fn limited(limiter: &Limiter, x: u64) -> Result<Result<u64, AppError>, Refused> {
    limiter.try_acquire(1)?;
    Ok(work(x))
}

/// A row of a function that each lane has.
macro_rules! row {
    ($name:expr, $part:ident, $does:expr, $function:ident, $is_right:path) => {
        Row::new($name, Part::$part, $does, |lane, n| match lane {
            0 => repeat(n, |x| $is_right(&one::$function(x))),
            _ => repeat(n, |x| $is_right(&two::$function(x))),
        })
    };
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = guarded_functions();
    rows.extend(limiters());
    rows
}

fn guarded_functions() -> Vec<Row> {
    registry().load(rules()).expect("the names are short");
    for trip in [one::blocked_open, two::blocked_open] {
        // One failure opens the breaker for an hour.
        let _ = trip(u64::MAX);
    }
    vec![
        row!("plain function", Yardstick, "the function unguarded", plain, Result::is_ok),
        Row::new(
            FLOOR,
            Part::Yardstick,
            "two raw reads of the processor's counter and six fetch_add of its own thread around it",
            floor::calls,
        )
        .also_with_ticker(),
        row!(
            GUARDED,
            Guarded,
            "#[guarded]: sliding log of 1 024, breaker on the share of slow calls, all statistics",
            exact_slow,
            Result::is_ok
        )
        .also_with_ticker(),
        row!(
            "leap: QPS + slow-call breaker, strict",
            Guarded,
            "the same with a sliding window of 100 buckets",
            strict_slow,
            Result::is_ok
        ),
        Row::new(
            "leap: QPS + slow-call breaker, async",
            Part::Guarded,
            "as exact, of an async function, in tokio",
            |lane, n| match lane {
                0 => runtime::repeat(n, async |x| one::async_exact_slow(x).await.is_ok()),
                _ => runtime::repeat(n, async |x| two::async_exact_slow(x).await.is_ok()),
            },
        ),
        row!("leap: QPS, exact", Limited, "#[guarded]: sliding log, all statistics", exact, Result::is_ok)
            .lacking("no breaker"),
        row!(
            "leap: QPS, strict",
            Limited,
            "#[guarded]: sliding window of 100 buckets, all statistics",
            strict,
            Result::is_ok
        )
        .lacking("no breaker"),
        row!(
            BLOCKED,
            Blocked,
            "1 000 per hour in a sliding log, used up; the block is counted",
            blocked_exact,
            is_blocked
        )
        .also_with_ticker(),
        row!(
            "leap: blocked by a breaker",
            Blocked,
            "open for an hour; the block is counted",
            blocked_open,
            is_blocked
        ),
        row!(
            "leap: slow-call breaker",
            Breaker,
            "#[guarded]: breaker on the share of slow calls, all statistics",
            slow,
            Result::is_ok
        )
        .lacking("no limit"),
        row!("leap: statistics only", Watched, "#[guarded] without a rule", statistics, Result::is_ok)
            .lacking("no limit, no breaker"),
    ]
}

fn limiters() -> Vec<Row> {
    vec![
        Row::new("leap: Limiter, exact", Part::Limiter, "sliding log of 1 024 per 10 µs", |lane, n| {
            static LIMITERS: LazyLock<Lanes<Limiter>> =
                LazyLock::new(|| Lanes::new(|_| Limiter::new(exact_and_wide())));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| matches!(limited(limiter, x), Ok(Ok(_))))
        })
        .lacking(super::LIMITER_LACKS),
        Row::new("leap: Limiter, strict", Part::Limiter, "sliding window of 100 buckets", |lane, n| {
            static LIMITERS: LazyLock<Lanes<Limiter>> = LazyLock::new(|| {
                Lanes::new(|_| Limiter::new(rule(1e9, Precision::Strict, Duration::from_secs(1))))
            });
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| matches!(limited(limiter, x), Ok(Ok(_))))
        })
        .lacking(super::LIMITER_LACKS),
        Row::new(
            "leap: Limiter, refusing",
            Part::Limiter,
            "1 000 per hour in a sliding log, used up",
            |lane, n| {
                static LIMITERS: LazyLock<Lanes<Limiter>> = LazyLock::new(|| {
                    Lanes::new(|_| Limiter::new(rule(1_000.0, Precision::Exact, Duration::from_secs(3_600))))
                });
                let limiter = LIMITERS.of(lane);
                repeat(n, |x| limited(limiter, x).is_err())
            },
        )
        .lacking(super::LIMITER_LACKS),
    ]
}
