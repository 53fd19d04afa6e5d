use std::num::NonZeroU32;
use std::time::Instant;

use failsafe::CircuitBreaker;
use governor::{Quota, RateLimiter};

fn work(number: u64) -> Result<u64, ()> {
    Ok(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7))
}

fn main() {
    let limiter = RateLimiter::direct(Quota::per_second(NonZeroU32::new(100).expect("not 0")));
    let breaker = failsafe::Config::new().build();
    let number = std::env::args().count() as u64;
    if limiter.check().is_err() {
        metrics::counter!("calls", "name" => "work", "outcome" => "blocked").increment(1);
        return;
    }
    let began = Instant::now();
    let answer = breaker.call(|| work(number));
    let outcome = if answer.is_ok() { "success" } else { "failure" };
    metrics::counter!("calls", "name" => "work", "outcome" => outcome).increment(1);
    metrics::histogram!("seconds", "name" => "work").record(began.elapsed().as_secs_f64());
    println!("{}", answer.expect("nothing has failed"));
}
