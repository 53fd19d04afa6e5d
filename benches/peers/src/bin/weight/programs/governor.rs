use std::num::NonZeroU32;

use governor::{Quota, RateLimiter};

fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn main() {
    let limiter = RateLimiter::direct(Quota::per_second(NonZeroU32::new(100).expect("not 0")));
    let number = std::env::args().count() as u64;
    limiter.check().expect("the first of 100");
    println!("{}", work(number));
}
