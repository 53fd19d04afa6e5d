//! ratelimit: a token bucket.

use std::sync::LazyLock;

use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};
use ratelimit::Ratelimiter;

use crate::row::{Part, Row};

struct Refused;

const PER_SECOND: u64 = 1_000_000_000;

fn full() -> Ratelimiter {
    Ratelimiter::builder(PER_SECOND)
        .initial_available(PER_SECOND)
        .build()
        .expect("no more than the bucket holds")
}

#[inline(never)]
fn limited(limiter: &Ratelimiter, x: u64) -> Result<Result<u64, AppError>, Refused> {
    limiter.try_wait().map_err(|_| Refused)?;
    Ok(work(x))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("ratelimit", Part::Limiter, "token bucket", |lane, n| {
            static LIMITERS: LazyLock<Lanes<Ratelimiter>> = LazyLock::new(|| Lanes::new(|_| full()));
            let limiter = LIMITERS.of(lane);
            repeat(n, |x| matches!(limited(limiter, x), Ok(Ok(_))))
        })
        .lacking(super::OTHER_LIMITER_LACKS),
    ]
}
