use std::convert::Infallible;
use std::time::Duration;

use tower::{ServiceBuilder, ServiceExt};
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_ratelimiter::RateLimiterLayer;

fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn main() {
    let limiter = RateLimiterLayer::builder()
        .limit_for_period(100)
        .refresh_period(Duration::from_secs(1))
        .timeout_duration(Duration::ZERO)
        .build()
        .expect("neither limit nor period is 0");
    let breaker = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .slow_call_duration_threshold(Duration::from_millis(200))
        .sliding_window_size(100)
        .wait_duration_in_open(Duration::from_secs(5))
        .build()
        .expect("thresholds are shares");
    let service = ServiceBuilder::new()
        .layer(limiter)
        .layer(breaker)
        .service(tower::service_fn(|number| async move { Ok::<u64, Infallible>(work(number)) }));
    let number = std::env::args().count() as u64;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread and a timer");
    println!("{}", runtime.block_on(service.oneshot(number)).ok().expect("the first of 100"));
}
