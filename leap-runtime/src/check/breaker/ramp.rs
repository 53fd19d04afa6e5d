//! The ramp on which a breaker comes back: how much of the traffic it lets through, and what became of that.

use std::time::Duration;

use super::sample::Sample;
use super::state::WHOLE;
use crate::sync::{AtomicU64, Ordering};

/// The share of calls to let through `elapsed` after a ramp began, in whole percents: `elapsed / over`, at least 1.
pub(super) fn share(elapsed: Duration, over: Duration) -> u16 {
    if elapsed >= over {
        return WHOLE;
    }
    let share = elapsed.as_nanos() * u128::from(WHOLE) / over.as_nanos();
    u16::try_from(share.max(1)).expect("less than all")
}

/// The results of the calls that the present ramp let through.
///
/// ```text
///  63     40 39     20 19    0
/// | ramp    | calls   | bad   |   ramp: the end of its generation
/// ```
///
/// Whose results stand here is part of the word, so that nobody has to clear it: the first result of a ramp replaces
/// those of an earlier one. (Two ramps with results on end would have to lie 2²⁴ generations apart to be taken for
/// one.) When `calls` is full both numbers are halved: the share stays.
#[derive(Debug)]
pub(super) struct Results(AtomicU64);

const RAMP: u32 = 40;
const CALLS: u32 = 20;
const COUNT: u64 = (1 << CALLS) - 1;

impl Results {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts a result of the ramp of `generation`, and tells what there is with it; nothing if that ramp is over.
    /// `is_on` looks whether it is still on, in the breaker's word.
    pub(super) fn add(&self, generation: u64, bad: bool, is_on: impl Fn() -> bool) -> Option<Sample> {
        let ramp = generation << RAMP >> RAMP;
        // Acquire: who finds the results of a later ramp also finds its generation in the word.
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            let (mut calls, mut n_bad) = match seen >> RAMP == ramp {
                true => (seen >> CALLS & COUNT, seen & COUNT),
                // Looked at after `seen`: then that is of an earlier ramp, and none later has come to pass.
                false if is_on() => (0, 0),
                false => return None,
            };
            if calls == COUNT {
                (calls, n_bad) = (calls / 2, n_bad / 2);
            }
            (calls, n_bad) = (calls + 1, n_bad + u64::from(bad));
            let next = ramp << RAMP | calls << CALLS | n_bad;
            // Release: goes with the load above. Of two results at once the second to change the word sees both.
            match self.0.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    #[expect(clippy::cast_possible_truncation, reason = "20 bits each")]
                    return Some(Sample { calls: calls as u32, bad: n_bad as u32 });
                }
                Err(found) => seen = found,
            }
        }
    }
}

#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn the_share_rises_with_time_from_the_first_percent_to_all() {
        let over = Duration::from_secs(10);
        let at = |ms| share(Duration::from_millis(ms), over);
        assert_eq!(
            [0, 199, 200, 5_099, 5_100, 9_999, 10_000, 60_000].map(at),
            [1, 1, 2, 50, 51, 99, 100, 100]
        );
        assert_eq!(share(Duration::ZERO, Duration::from_nanos(1)), 1);
    }

    #[test]
    fn the_results_of_a_ramp_replace_those_of_an_earlier_one_and_not_of_a_later() {
        let results = Results::new();
        assert_eq!(results.add(3, true, || true), Some(Sample { calls: 1, bad: 1 }));
        assert_eq!(results.add(3, false, || unreachable!()), Some(Sample { calls: 2, bad: 1 }));
        assert_eq!(results.add(9, false, || true), Some(Sample { calls: 1, bad: 0 }));
        assert_eq!(results.add(3, true, || false), None);
        assert_eq!(results.add(9, true, || unreachable!()), Some(Sample { calls: 2, bad: 1 }));
    }

    #[test]
    fn results_without_end_keep_their_share() {
        let results = Results::new();
        let mut sample = Sample::default();
        for n in 0..3_000_000_u32 {
            sample = results.add(1 << 24, n % 4 == 0, || true).unwrap();
        }
        let share = f64::from(sample.bad) / f64::from(sample.calls);
        assert!((share - 0.25).abs() < 1e-5, "{sample:?}");
    }
}
