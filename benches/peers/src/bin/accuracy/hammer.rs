//! Threads that ask without a pause, on real clocks.

use std::hint::spin_loop;
use std::thread;
use std::time::Duration;

use leap_runtime::{Clock, SystemClock, Timestamp};

use crate::calls::{Call, Calls};
use crate::limiters::{Kind, take_reading};

/// How long after the clock's start the threads begin: not at the beginning of a second, nor of half of one.
const BEGIN: Duration = Duration::from_millis(450);

/// What one limiter answered.
#[derive(Debug)]
pub(crate) struct Hammered {
    pub(crate) calls: Vec<Call>,
    pub(crate) span: [Timestamp; 2],
}

/// Makes a limiter of that kind and has `n_threads` ask it for so long.
pub(crate) fn hammer(kind: &Kind, limit: u32, n_threads: usize, time: Duration) -> Hammered {
    let clock = SystemClock::new();
    let ask = (kind.real)(limit, &clock);
    let begin = Timestamp::ZERO.saturating_add(BEGIN);
    let end = begin.saturating_add(time);
    let run = || {
        wait_until(begin, &clock);
        let mut calls = Calls::default();
        loop {
            take_reading(); // of somebody else's limiter
            let before = clock.now();
            if before >= end {
                return calls;
            }
            let passed = ask();
            let after = clock.now();
            calls.note(Call::new(take_reading().unwrap_or(before), after, passed));
        }
    };
    let calls = thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(run)).collect();
        Calls::in_order(threads.into_iter().map(|thread| thread.join().expect("no limiter panics")))
    });
    Hammered { calls, span: [begin, end] }
}

/// Sleeps, and looks at the clock for the last millisecond.
pub(crate) fn wait_until(moment: Timestamp, clock: &SystemClock) {
    thread::sleep(moment.since(clock.now()).saturating_sub(Duration::from_millis(1)));
    while clock.now() < moment {
        spin_loop();
    }
}
