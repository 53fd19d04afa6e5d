//! leaky-bucket: an async token bucket.

use std::sync::LazyLock;
use std::time::Duration;

use leaky_bucket::RateLimiter;
use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, work};

use crate::row::{Part, Row};
use crate::runtime;

const PER_SECOND: usize = 1_000_000_000;

fn full() -> RateLimiter {
    RateLimiter::builder()
        .max(PER_SECOND)
        .initial(PER_SECOND)
        .refill(PER_SECOND)
        .interval(Duration::from_secs(1))
        .build()
}

async fn limited(limiter: &RateLimiter, x: u64) -> Result<u64, AppError> {
    limiter.acquire(1).await;
    work(x)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            "leaky-bucket",
            Part::Limiter,
            "token bucket that waits, in tokio; nobody waits",
            |lane, n| {
                static LIMITERS: LazyLock<Lanes<RateLimiter>> = LazyLock::new(|| Lanes::new(|_| full()));
                let limiter = LIMITERS.of(lane);
                runtime::repeat(n, async |x| limited(limiter, x).await.is_ok())
            },
        )
        .lacking(super::OTHER_LIMITER_LACKS),
    ]
}
