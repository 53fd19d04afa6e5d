//! governor: a limiter by GCRA, alone and by key.

use std::num::NonZeroU32;
use std::sync::LazyLock;

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};

use crate::row::{Part, Row};

/// The one value that is asked for.
const USER: u64 = 7;

pub(crate) struct Refused;

/// Passes whatever a processor can ask.
pub(crate) fn wide() -> Quota {
    Quota::per_second(NonZeroU32::new(1_000_000_000).expect("not zero"))
}

fn used_up() -> Quota {
    Quota::per_hour(NonZeroU32::new(10).expect("not zero"))
}

#[inline(never)]
fn limited(limiter: &DefaultDirectRateLimiter, x: u64) -> Result<Result<u64, AppError>, Refused> {
    limiter.check().map_err(|_| Refused)?;
    Ok(work(x))
}

#[inline(never)]
fn limited_by_key(limiter: &DefaultKeyedRateLimiter<u64>, x: u64) -> Result<Result<u64, AppError>, Refused> {
    limiter.check_key(&USER).map_err(|_| Refused)?;
    Ok(work(x))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("governor: direct", Part::Limiter, "GCRA", |lane, n| {
            static LIMITERS: LazyLock<Lanes<DefaultDirectRateLimiter>> =
                LazyLock::new(|| Lanes::new(|_| RateLimiter::direct(wide())));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| matches!(limited(limiter, x), Ok(Ok(_))))
        })
        .lacking(super::OTHER_LIMITER_LACKS),
        Row::new("governor: direct, refusing", Part::Limiter, "GCRA, used up for an hour", |lane, n| {
            static LIMITERS: LazyLock<Lanes<DefaultDirectRateLimiter>> =
                LazyLock::new(|| Lanes::new(|_| RateLimiter::direct(used_up())));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| limited(limiter, x).is_err())
        })
        .lacking(super::OTHER_LIMITER_LACKS),
        Row::new("governor: keyed", Part::Limiter, "GCRA of one key in a DashMap", |lane, n| {
            static LIMITERS: LazyLock<Lanes<DefaultKeyedRateLimiter<u64>>> =
                LazyLock::new(|| Lanes::new(|_| RateLimiter::keyed(wide())));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| matches!(limited_by_key(limiter, x), Ok(Ok(_))))
        })
        .lacking(super::OTHER_LIMITER_LACKS),
        Row::new("governor: keyed, refusing", Part::Limiter, "the same, used up for an hour", |lane, n| {
            static LIMITERS: LazyLock<Lanes<DefaultKeyedRateLimiter<u64>>> =
                LazyLock::new(|| Lanes::new(|_| RateLimiter::keyed(used_up())));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| limited_by_key(limiter, x).is_err())
        })
        .lacking(super::OTHER_LIMITER_LACKS),
    ]
}
