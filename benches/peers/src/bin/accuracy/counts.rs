//! What is counted of the calls of one load.

use std::collections::BTreeMap;

use leap_runtime::Timestamp;

use crate::calls::Call;
use crate::log::{INTERVAL, SlidingLog};

/// The figures of one limiter under one load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counts {
    pub(crate) asked: u64,
    pub(crate) passed: u64,
    /// Fewest and most of a whole second, counted from the clock's start, in which calls came. None where there was none.
    pub(crate) per_second: Option<[u64; 2]>,
    pub(crate) sliding: Most,
    /// What a sliding log lets pass of the same calls.
    pub(crate) log: u64,
}

/// The most that passed in any half-open span of one interval, wherever it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Most {
    /// So many did, wherever between its two readings each was decided.
    pub(crate) certain: u64,
    /// No more can have.
    pub(crate) possible: u64,
}

impl Counts {
    /// `calls` are in order. Whole seconds are those between `begin` and `end`.
    pub(crate) fn of(calls: &[Call], limit: usize, [begin, end]: [Timestamp; 2]) -> Self {
        let passes: Vec<Call> = calls.iter().copied().filter(|call| call.passed()).collect();
        let mut log = SlidingLog::new(limit);
        Self {
            asked: calls.iter().map(|call| call.n()).sum(),
            passed: passes.len() as u64,
            per_second: per_second(calls, begin.as_nanos().div_ceil(SECOND)..end.as_nanos() / SECOND),
            sliding: Most::of(&passes),
            log: calls.iter().map(|call| log.admit(call.from, call.n())).sum(),
        }
    }

    /// Of 1: what passed beside what the log lets pass.
    pub(crate) fn share(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "millions")]
        let [passed, log] = [self.passed as f64, self.log as f64];
        passed / log
    }
}

const SECOND: u64 = 1_000_000_000;

/// A call counts in the second in which its answer was there.
fn per_second(calls: &[Call], whole: std::ops::Range<u64>) -> Option<[u64; 2]> {
    let mut passed: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls {
        *passed.entry(call.to().as_nanos() / SECOND).or_default() += u64::from(call.passed());
    }
    let counts = || whole.clone().filter_map(|second| passed.get(&second).copied());
    Some([counts().min()?, counts().max()?])
}

impl Most {
    fn of(passes: &[Call]) -> Self {
        Self { certain: certain(passes), possible: possible(passes) }
    }
}

/// The most calls that lie in one span with all of the time between their two readings.
fn certain(passes: &[Call]) -> u64 {
    // One that took an interval or longer lies in none; of the others, who is in too late for a span is also in after
    // its start.
    let short = || passes.iter().filter(|call| call.to().since(call.from) < INTERVAL);
    let [froms, tos] = [sorted(short().map(|call| call.from)), sorted(short().map(|call| call.to()))];
    let mut inside = 0;
    let mut most = 0;
    for (before, start) in froms.iter().enumerate() {
        let end = start.saturating_add(INTERVAL);
        while tos.get(inside).is_some_and(|to| *to < end) {
            inside += 1;
        }
        most = most.max(inside - before);
    }
    most as u64
}

/// The most calls that lie in one span with some of the time between their two readings.
fn possible(passes: &[Call]) -> u64 {
    let [froms, tos] =
        [sorted(passes.iter().map(|call| call.from)), sorted(passes.iter().map(|call| call.to()))];
    let mut begun = 0;
    let mut most = 0;
    // A span loses nobody by starting later, until somebody's time ends.
    for (over, start) in tos.iter().enumerate() {
        let end = start.saturating_add(INTERVAL);
        while froms.get(begun).is_some_and(|from| *from < end) {
            begun += 1;
        }
        most = most.max(begun - over);
    }
    most as u64
}

fn sorted(times: impl Iterator<Item = Timestamp>) -> Vec<Timestamp> {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Passes with the two readings of each, in ms.
    fn passes(readings: &[(u64, u64)]) -> Vec<Call> {
        readings.iter().map(|(from, to)| Call::new(at(*from), at(*to), true)).collect()
    }

    #[test]
    fn a_span_is_half_open() {
        let apart = |ms: u64| Most::of(&passes(&[(500, 500), (500 + ms, 500 + ms)]));
        assert_eq!(apart(999), Most { certain: 2, possible: 2 });
        assert_eq!(apart(1_000), Most { certain: 1, possible: 1 });
    }

    #[test]
    fn a_call_between_two_readings_counts_certainly_where_both_are_and_possibly_where_one_is() {
        // The first may have been decided late enough, and the last early enough, for all four to be in a second.
        let four = passes(&[(100, 200), (300, 300), (1_000, 1_000), (1_150, 1_250)]);
        assert_eq!(Most::of(&four), Most { certain: 3, possible: 4 });
    }

    #[test]
    fn a_call_as_long_as_the_interval_is_certain_nowhere_and_possible_everywhere() {
        let calls = passes(&[(0, 3_000), (500, 500), (2_000, 2_000)]);
        assert_eq!(Most::of(&calls), Most { certain: 1, possible: 2 });
        assert_eq!(Most::of(&passes(&[(0, 1_000)])), Most { certain: 0, possible: 1 });
    }

    #[test]
    fn the_most_of_any_second_is_that_of_trying_all_of_them() {
        // A generator of our own, so that it fails the same way twice.
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let readings: Vec<_> = (0..=random(12))
                .map(|_| {
                    let from = random(4_000);
                    (from, from + random(3) * random(700))
                })
                .collect();
            let inside = |start: u64, (from, to): &&(u64, u64)| *from >= start && *to < start + 1_000;
            let touched = |start: u64, (from, to): &&(u64, u64)| *to >= start && *from < start + 1_000;
            let most = |counts: &dyn Fn(u64, &&(u64, u64)) -> bool| {
                let of = |start| readings.iter().filter(|call| counts(start, call)).count() as u64;
                (0..6_000).map(of).max().unwrap()
            };
            let tried = Most { certain: most(&inside), possible: most(&touched) };
            assert_eq!(Most::of(&passes(&readings)), tried, "{readings:?}");
        }
    }

    #[test]
    fn what_is_counted_of_a_load_is_told_beside_the_log() {
        let mut calls = passes(&[(900, 900), (1_100, 1_100), (1_200, 1_200)]);
        calls.push(Call::new(at(1_300), at(1_300), false));
        calls.push(Call::new(at(2_500), at(2_500), false));
        let counts = Counts::of(&calls, 2, [at(900), at(3_000)]);
        let sliding = Most { certain: 3, possible: 3 };
        assert_eq!(counts, Counts { asked: 5, passed: 3, per_second: Some([0, 2]), sliding, log: 3 });
        assert_eq!(Counts::of(&calls, 2, [at(900), at(1_900)]).per_second, None);
    }
}
