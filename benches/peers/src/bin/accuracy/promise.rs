//! What leap promises, as checks of recorded calls.
//!
//! They do not depend on how fast the machine is, or on who got which share of it: a thread that is put aside in the
//! middle of a call makes the time between the two readings of that call longer, and that is allowed for where it
//! matters, and only there.

use crate::calls::Call;
use crate::log::{INTERVAL, SlidingLog};

/// Nanoseconds by which a permit's time may be written later than it was read, beside the time that its call took: it is
/// rounded up to the microsecond, and whoever writes it in another's stead adds one.
const ROUNDED_NS: u64 = 2_000;

/// Refusals that a sliding log would not have made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// There was room, for certain.
    pub(crate) with_room: u64,
    /// There was room by the readings alone, but a call was on its way whose reading was older than its answer: until it
    /// is written down a permit counts as passing just now.
    pub(crate) while_others_passed: u64,
}

/// Looks at each refusal of `calls`, which are in order and carry the limiter's own readings.
///
/// A call that read `now` is refused rightly if the log of what had passed is full: if, of all permits, the one `limit`
/// from the end was read within the last interval. Which of the others' calls came first, when they overlap, nobody can
/// tell; so whatever was read before this refusal was over counts as having passed. And the order in which permits leave
/// is that in which they were committed, not that of their readings: leap promises that a refusal has `limit` permits
/// within the last interval and twice the longest time that one of these calls took.
pub(crate) fn refusals(calls: &[Call], limit: usize, n_threads: usize) -> Refusals {
    let passes: Vec<Call> = calls.iter().copied().filter(|call| call.passed()).collect();
    // The longest of the `limit` before each place, and of those that may have overtaken one of them.
    let longest: Vec<u64> = (0..=passes.len())
        .map(|end| {
            let these = &passes[end.saturating_sub(limit + n_threads)..end];
            these.iter().map(|call| call.took_ns()).max().unwrap_or(0)
        })
        .collect();
    let mut refusals = Refusals::default();
    for call in calls.iter().filter(|call| !call.passed()) {
        let n_before = passes.partition_point(|pass| pass.from <= call.to());
        let full_since = n_before.checked_sub(limit).map(|leaving| passes[leaving].from);
        let allowed_ns = ROUNDED_NS + 2 * longest[n_before];
        let within =
            |ns| full_since.is_some_and(|since| since.as_nanos() + INTERVAL_NS + ns > call.from.as_nanos());
        if !within(allowed_ns) {
            refusals.with_room += call.n();
        } else if !within(ROUNDED_NS) {
            refusals.while_others_passed += call.n();
        }
    }
    refusals
}

const INTERVAL_NS: u64 = INTERVAL.as_secs() * 1_000_000_000;

/// The calls, those that passed as standing at the limiter's own reading, by which it promises to go.
pub(crate) fn at_their_readings(calls: &[Call]) -> Vec<Call> {
    let stands = |call: &Call| if call.passed() { Call::new(call.from, call.from, true) } else { *call };
    calls.iter().map(stands).collect()
}

/// How many calls, made one after another, were answered otherwise than by a sliding log.
pub(crate) fn unlike_the_log(calls: &[Call], limit: usize) -> u64 {
    let mut log = SlidingLog::new(limit);
    let differs = |call: &&Call| log.admit(call.from, call.n()) != u64::from(call.passed());
    calls.iter().filter(differs).map(|call| call.n()).sum()
}

#[cfg(test)]
mod tests {
    use leap_runtime::Timestamp;

    use super::*;

    fn call(from_us: u64, took_us: u64, passed: bool) -> Call {
        Call::new(Timestamp::from_micros(from_us), Timestamp::from_micros(from_us + took_us), passed)
    }

    /// Two pass, the second taking `took_us`; one more is refused at `refused_us`.
    fn refused(took_us: u64, refused_us: u64) -> Refusals {
        let calls = [call(0, 0, true), call(100, took_us, true), call(refused_us, 0, false)];
        refusals(&calls, 2, 1)
    }

    #[test]
    fn a_refusal_is_right_while_the_last_permits_are_within_the_interval() {
        assert_eq!(refused(0, 999_999), Refusals::default());
        assert_eq!(refused(0, 1_000_001), Refusals::default(), "times are rounded up to the microsecond");
        assert_eq!(refused(0, 1_000_002), Refusals { with_room: 1, while_others_passed: 0 });
    }

    #[test]
    fn a_refusal_may_be_owed_to_a_call_that_took_long() {
        let overlapped = Refusals { with_room: 0, while_others_passed: 1 };
        assert_eq!(refused(300, 1_000_600), overlapped);
        assert_eq!(refused(300, 1_000_602), Refusals { with_room: 1, while_others_passed: 0 });
    }

    #[test]
    fn a_refusal_before_the_limit_was_reached_is_wrong() {
        let calls = [call(0, 0, true), call(10, 0, false), call(20, 0, true), call(30, 0, false)];
        assert_eq!(refusals(&calls, 2, 1), Refusals { with_room: 1, while_others_passed: 0 });
    }

    #[test]
    fn a_call_that_may_have_come_first_counts_as_passed() {
        // The refusal began before the second pass, and was over after it.
        let calls = [call(0, 0, true), call(10, 5, false), call(12, 0, true)];
        assert_eq!(refusals(&calls, 2, 1), Refusals::default());
    }

    #[test]
    fn answers_are_compared_with_the_log_one_by_one() {
        let right = [call(0, 0, true), call(0, 0, true), call(999_999, 0, false), call(1_000_000, 0, true)];
        assert_eq!(unlike_the_log(&right, 2), 0);
        let too_many = [call(0, 0, true), call(0, 0, true), call(0, 0, true)];
        assert_eq!(unlike_the_log(&too_many, 2), 1);
        let too_few = [call(0, 0, true), call(5, 0, false), call(6, 0, false)];
        assert_eq!(unlike_the_log(&too_few, 2), 1, "the log has let the first of them pass, so it is full");
    }
}
