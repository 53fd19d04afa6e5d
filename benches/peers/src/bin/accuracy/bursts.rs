//! Loads at given moments: on a clock that is set, where a limiter takes one, and otherwise in real time.

use std::time::{Duration, SystemTime};

use leap_runtime::{Clock, SystemClock, Timestamp};

use crate::calls::{Call, Calls};
use crate::hammer::wait_until;
use crate::limiters::{Ask, AskAt, take_reading};

/// How many calls come at which moments, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Load(Vec<(Timestamp, u64)>);

impl Load {
    /// So often: three seconds of rest, two limits at once, and then a tenth of the limit each 10 ms for not quite a
    /// second.
    pub(crate) fn after_idle(limit: u32, times: u64) -> Self {
        let limit = u64::from(limit);
        let burst_at = (1..=times).map(|time| 4_000 * time - 1_000);
        let rest = |at| (1..100).map(move |tick| (Timestamp::from_millis(at + 10 * tick), limit / 10));
        Self(
            burst_at
                .flat_map(|at| [(Timestamp::from_millis(at), 2 * limit)].into_iter().chain(rest(at)))
                .collect(),
        )
    }

    /// The limit, 5 ms before the end of each second and again 5 ms after it.
    pub(crate) fn straddling(limit: u32, times: u64) -> Self {
        let around = |second| [1_000 * second - 5, 1_000 * second + 5];
        Self((1..=times).flat_map(around).map(|ms| (Timestamp::from_millis(ms), limit.into())).collect())
    }

    /// The limit at once, at each full second, and nothing else.
    pub(crate) fn each_second(limit: u32, times: u64) -> Self {
        Self((1..=times).map(|second| (Timestamp::from_millis(1_000 * second), limit.into())).collect())
    }

    /// A call each 200 µs.
    pub(crate) fn saturating(time: Duration) -> Self {
        let n = u64::try_from(time.as_micros()).unwrap_or(u64::MAX) / 200;
        Self((0..n).map(|call| (Timestamp::from_micros(200 * call), 1)).collect())
    }

    /// `n` calls each `period_ms`, for so long, the first 0.45 s into a second.
    pub(crate) fn each(period_ms: u64, n: u64, time: Duration) -> Self {
        let n_bursts = u64::try_from(time.as_millis()).unwrap_or(u64::MAX) / period_ms;
        Self((0..n_bursts).map(|burst| (Timestamp::from_millis(450 + period_ms * burst), n)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn span(&self) -> [Timestamp; 2] {
        let at = |call: Option<&(Timestamp, u64)>| call.map_or(Timestamp::ZERO, |(at, _)| *at);
        // Whole seconds are meant, and the last begins with the last call at the latest.
        [Timestamp::ZERO, at(self.0.last()).saturating_add(Duration::from_secs(1))]
    }

    /// The answers of a limiter whose clock is set.
    pub(crate) fn on_a_set_clock(&self, mut ask: AskAt) -> Vec<Call> {
        let mut calls = Calls::default();
        for (at, n) in &self.0 {
            for _ in 0..*n {
                calls.note(Call::new(*at, *at, ask(*at)));
            }
        }
        Calls::in_order([calls])
    }

    /// The answers in real time; the load's seconds are those of the wall clock.
    pub(crate) fn in_real_time(&self, ask: &Ask) -> Vec<Call> {
        let clock = SystemClock::new();
        let start = Timestamp::ZERO.saturating_add(to_the_next_second(clock.now().since(Timestamp::ZERO)));
        let mut calls = Calls::default();
        for (at, n) in &self.0 {
            wait_until(start.saturating_add(at.since(Timestamp::ZERO)), &clock);
            for _ in 0..*n {
                take_reading();
                let before = clock.now();
                let passed = ask();
                let after = clock.now();
                let since = |moment: Timestamp| Timestamp::ZERO.saturating_add(moment.since(start));
                calls.note(Call::new(since(before), since(after), passed));
            }
        }
        Calls::in_order([calls])
    }
}

/// What a clock that shows `shown` now will show when the wall clock is at a whole second.
fn to_the_next_second(shown: Duration) -> Duration {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    shown + Duration::from_nanos(1_000_000_000 - u64::from(wall.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Counts, Most};
    use crate::limiters::leap_at;
    use crate::promise::{Refusals, refusals, unlike_the_log};
    use leap_runtime::Precision;

    const LIMIT: u32 = 100;

    fn answered(load: &Load, precision: Precision, n_buckets: u32) -> (Vec<Call>, Counts) {
        let calls = load.on_a_set_clock(leap_at(LIMIT, precision, n_buckets));
        let counts = Counts::of(&calls, LIMIT as usize, load.span());
        (calls, counts)
    }

    #[test]
    fn exact_answers_as_the_log_and_the_checks_find_that_strict_does_not() {
        let load = Load::saturating(Duration::from_secs(3));
        let (exact, _) = answered(&load, Precision::Exact, 100);
        let (strict, _) = answered(&load, Precision::Strict, 100);
        assert_eq!((unlike_the_log(&exact, 100), refusals(&exact, 100, 1)), (0, Refusals::default()));
        assert!(unlike_the_log(&strict, 100) > 0);
        assert!(refusals(&strict, 100, 1).with_room > 0);
    }

    #[test]
    fn two_buckets_let_twice_the_limit_pass_and_the_counts_tell() {
        let load = Load::each(200, 100, Duration::from_secs(3));
        let (_, counts) = answered(&load, Precision::Sentinel, 2);
        assert_eq!(counts.sliding, Most { certain: 200, possible: 200 });
        let (_, counts) = answered(&load, Precision::Exact, 100);
        assert_eq!(counts.sliding, Most { certain: 100, possible: 100 });
    }

    #[test]
    fn loads_are_what_they_say() {
        let at = Timestamp::from_millis;
        assert_eq!(Load::straddling(7, 2).0, [(at(995), 7), (at(1_005), 7), (at(1_995), 7), (at(2_005), 7)]);
        assert_eq!(Load::each_second(7, 2).0, [(at(1_000), 7), (at(2_000), 7)]);
        assert_eq!(Load::after_idle(10, 1).0[..3], [(at(3_000), 20), (at(3_010), 1), (at(3_020), 1)]);
        assert_eq!(Load::after_idle(10, 2).0.last(), Some(&(at(7_990), 1)));
        assert_eq!(Load::saturating(Duration::from_secs(1)).0.len(), 5_000);
        assert_eq!(Load::each(200, 3, Duration::from_millis(400)).0, [(at(450), 3), (at(650), 3)]);
    }
}
