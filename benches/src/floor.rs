//! What no guard with these statistics can be cheaper than: the yardstick of all rows.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quanta::Clock;

use crate::work::{AppError, repeat, work};

pub const NAME: &str = "floor";

/// Counters of one thread, so that nobody contends for them.
#[derive(Default)]
#[repr(align(64))]
struct Counters([AtomicU64; 6]);

/// The plain function with two raw clock reads and six `fetch_add` around it.
#[inline(never)]
fn floor(clock: &Clock, counters: &Counters, x: u64) -> Result<u64, AppError> {
    let [entered, bucket, in_flight, ended, time, histogram] = &counters.0;
    let start = clock.raw();
    for counter in [entered, bucket, in_flight] {
        counter.fetch_add(1, Relaxed);
    }
    let value = work(x);
    let end = clock.raw();
    time.fetch_add(end.wrapping_sub(start), Relaxed);
    for counter in [ended, histogram] {
        counter.fetch_add(1, Relaxed);
    }
    value
}

pub fn calls(_lane: usize, n: u64) -> u64 {
    // Making one asks the processor what it can do, which takes some 30 µs in a virtual machine.
    static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::new);
    let (clock, counters) = (&*CLOCK, Counters::default());
    repeat(n, |x| floor(black_box(clock), black_box(&counters), x).is_ok())
}

/// The two clock reads of a guarded call alone, as the runtime's own clock makes them.
pub fn clock_calls(_lane: usize, n: u64) -> u64 {
    use leap_runtime::{Clock as _, SystemClock};
    static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);
    let clock = &*CLOCK;
    repeat(n, |_| {
        let start = black_box(clock).now();
        black_box(clock).now() >= start
    })
}
