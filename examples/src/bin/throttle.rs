//! Calls that start at an even pace: who comes too early waits for its turn, who would wait too long is blocked.
//!
//! ```text
//! cargo run --release -p leap-examples --bin throttle
//! ```
//!
//! What to look at:
//!
//! - *A sync loop* prints labels as fast as it may. Its thread is parked before each call, so the calls start 100 ms apart,
//!   and none of them is lost.
//! - *Async calls* come as they like. Of those that come at once, one starts every 100 ms, as many as have their turn within
//!   the longest wait; the others are blocked at once. No thread waits for them.
//! - *With a burst* an idle throttle starts ten at once, and goes on at the same pace.
//!
//! Time is virtual: the clock below moves on by itself when a thread waits for it.

#![allow(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_examples::bar;
use leap_runtime::{Blocked, Clock, ManualClock, Registry, Timestamp, guarded};

/// How many calls come in each second, and how far apart they are.
const LOAD: [(u32, Duration); 7] = [
    (8, Duration::from_millis(120)),
    (20, Duration::ZERO),
    (10, Duration::from_millis(100)),
    (0, Duration::ZERO),
    (20, Duration::ZERO),
    (20, Duration::from_millis(50)),
    (0, Duration::ZERO),
];
/// How often futures are polled.
const TICK: Duration = Duration::from_millis(10);
const TICKS_PER_SECOND: u32 = 100;

#[guarded("label.print", qps = 10, behavior = throttle, max_wait_ms = 500)]
fn print(clock: &Leaping) -> Result<Timestamp, Blocked> {
    Ok(clock.now())
}

#[guarded("mail.send", qps = 10, behavior = throttle, max_wait_ms = 500)]
async fn mail(clock: &Leaping) -> Result<Timestamp, Blocked> {
    Ok(clock.now())
}

#[guarded("push.send", qps = 10, behavior = throttle, max_wait_ms = 500, burst = 10)]
async fn push(clock: &Leaping) -> Result<Timestamp, Blocked> {
    Ok(clock.now())
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = Leaping::default();
    let registry = Registry::builder().clock(clock.clone()).build();
    registry.scope(|| {
        println!("a sync loop\n  call  arrives  starts  waits");
        for call in 1..=6 {
            let arrives = clock.now();
            let starts = print(&clock)?;
            let waits = starts.since(arrives).as_millis();
            println!("{call:>6}  {:>7}  {:>6}  {waits:>5}", arrives.as_millis(), starts.as_millis());
        }
        println!("\nasync calls");
        by_the_second(&clock, mail);
        println!("\nasync calls, with a burst of 10");
        by_the_second(&clock, push);
        Ok(())
    })
}

fn by_the_second<'a, F>(clock: &'a Leaping, send: impl Fn(&'a Leaping) -> F)
where
    F: Future<Output = Result<Timestamp, Blocked>>,
{
    println!("second  offered  started  blocked  still wait  longest wait");
    let mut under_way: Vec<(Timestamp, Pin<Box<F>>)> = Vec::new();
    for (second, (offered, apart)) in LOAD.into_iter().enumerate() {
        let begin = clock.now();
        let (mut come, mut started, mut blocked, mut longest) = (0, 0, 0, Duration::ZERO);
        for _ in 0..TICKS_PER_SECOND {
            while come < offered && clock.now() >= begin.saturating_add(apart * come) {
                under_way.push((clock.now(), Box::pin(send(clock))));
                come += 1;
            }
            under_way.retain_mut(|(arrived, call)| match poll(call) {
                Poll::Pending => true,
                Poll::Ready(Ok(start)) => {
                    started += 1;
                    longest = longest.max(start.since(*arrived));
                    false
                }
                Poll::Ready(Err(_)) => {
                    blocked += 1;
                    false
                }
            });
            clock.0.advance(TICK);
        }
        let (wait, longest, bar) = (under_way.len(), longest.as_millis(), bar(started, 1));
        let row = format!(
            "{second:>6}  {offered:>7}  {started:>7}  {blocked:>7}  {wait:>10}  {longest:>9} ms  {bar}"
        );
        println!("{}", row.trim_end());
    }
}

/// Polls once. Nobody has to be woken: every future is polled at every tick.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A manual clock that leaps to the moment that a thread waits for, so that nobody has to move it meanwhile.
#[derive(Clone, Debug, Default)]
struct Leaping(ManualClock);

impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn park_until(&self, until: Timestamp) {
        self.0.set(until.max(self.now()));
    }

    fn wake_at(&self, until: Timestamp, waker: &Waker) -> bool {
        self.0.wake_at(until, waker)
    }
}
