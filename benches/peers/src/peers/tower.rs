//! tower-resilience: a circuit breaker and a rate limiter as tower services, each called when it is ready.

use std::future::{Ready, ready};
use std::sync::LazyLock;
use std::time::Duration;

use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, work};
use tower::util::ServiceFn;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};
use tower_resilience_circuitbreaker::{CircuitBreaker, CircuitBreakerLayer, DefaultClassifier};
use tower_resilience_ratelimiter::{RateLimiter, RateLimiterLayer};

use crate::row::{Part, Row};
use crate::runtime;

type Inner = ServiceFn<fn(u64) -> Ready<Result<u64, AppError>>>;

fn inner() -> Inner {
    service_fn(|x| ready(work(x)))
}

fn breaker() -> CircuitBreaker<Inner, DefaultClassifier> {
    CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_size(100)
        .build()
        .expect("a rate below one and a window above zero")
        .layer(inner())
}

fn limiter() -> RateLimiter<Inner> {
    RateLimiterLayer::builder()
        .limit_for_period(1_000_000_000)
        .refresh_period(Duration::from_secs(1))
        .timeout_duration(Duration::from_millis(500))
        .build()
        .expect("a limit and a period above zero")
        .layer(inner())
}

/// Each batch calls a clone of the service, as each connection of a server does; clones share their state.
fn calls<S: Service<u64>>(mut service: S, n: u64) -> u64 {
    runtime::repeat(n, async |x| match service.ready().await {
        Ok(service) => service.call(x).await.is_ok(),
        Err(_) => false,
    })
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            "tower-resilience: breaker",
            Part::Breaker,
            "failure rate of the last 100 calls, in tokio",
            |lane, n| {
                static SERVICES: LazyLock<Lanes<CircuitBreaker<Inner, DefaultClassifier>>> =
                    LazyLock::new(|| Lanes::new(|_| breaker()));
                calls(SERVICES.of(lane).clone(), n)
            },
        )
        .lacking("no limit, no numbers to read; slow calls not looked at, which it could"),
        Row::new(
            "tower-resilience: limiter",
            Part::Limiter,
            "fixed window, its default, in tokio",
            |lane, n| {
                static SERVICES: LazyLock<Lanes<RateLimiter<Inner>>> =
                    LazyLock::new(|| Lanes::new(|_| limiter()));
                calls(SERVICES.of(lane).clone(), n)
            },
        )
        .lacking(super::OTHER_LIMITER_LACKS),
    ]
}

#[cfg(test)]
mod tests {
    use tower::{Service as _, ServiceExt as _};
    use tower_resilience_circuitbreaker::CircuitBreakerError;

    use super::{breaker, runtime};

    #[test]
    fn failures_open_it_for_clones_too() {
        let mut failing = breaker();
        let clone = failing.clone();
        runtime::repeat(200, async |_| {
            let service = failing.ready().await.unwrap();
            service.call(u64::MAX).await.is_err()
        });
        let rejected = |error| matches!(error, CircuitBreakerError::OpenCircuit);
        let odd = runtime::repeat(1, async |x| clone.clone().oneshot(x).await.is_err_and(rejected));
        assert_eq!(odd, 0);
    }
}
