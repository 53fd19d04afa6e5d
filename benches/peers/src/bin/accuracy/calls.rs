//! What was asked, when, and how it was answered.

use leap_runtime::Timestamp;

/// A call that passed, or calls of one thread that were refused within one microsecond.
///
/// Nobody but the limiter knows the moment at which it decided. It lies between two readings of our clock: one before the
/// call, or the limiter's own where we can see it, and one after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Of the last of them.
    pub(crate) from: Timestamp,
    /// Up to the reading after it; at most 4 s.
    took_ns: u32,
    /// 0 for a call that passed.
    refused: u32,
}

impl Call {
    pub(crate) fn new(from: Timestamp, to: Timestamp, passed: bool) -> Self {
        let took_ns = u32::try_from(to.since(from).as_nanos()).unwrap_or(u32::MAX);
        Self { from, took_ns, refused: u32::from(!passed) }
    }

    /// The latest moment at which it can have been decided.
    pub(crate) fn to(self) -> Timestamp {
        Timestamp::from_nanos(self.from.as_nanos() + self.took_ns())
    }

    pub(crate) fn took_ns(self) -> u64 {
        self.took_ns.into()
    }

    pub(crate) fn passed(self) -> bool {
        self.refused == 0
    }

    /// How many calls it stands for.
    pub(crate) fn n(self) -> u64 {
        self.refused.max(1).into()
    }
}

/// The calls of one thread.
///
/// Of those refused in the same microsecond only the last is kept, with their number: there are tens of millions of them,
/// and leap rounds the time at which a permit leaves to the microsecond. Each that passed is kept.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Call>);

impl Calls {
    #[inline]
    pub(crate) fn note(&mut self, call: Call) {
        match self.0.last_mut() {
            Some(last) if !call.passed() && !last.passed() && is_same_microsecond(call, *last) => {
                *last = Call { refused: last.refused + 1, ..call };
            }
            _ => self.0.push(call),
        }
    }

    /// Those of all threads, by the first moment at which each can have been decided.
    pub(crate) fn in_order(threads: impl IntoIterator<Item = Self>) -> Vec<Call> {
        let mut all: Vec<Call> = threads.into_iter().flat_map(|calls| calls.0).collect();
        all.sort_by_key(|call| call.from); // stable: it finds the threads' own order and merges
        all
    }
}

fn is_same_microsecond(one: Call, other: Call) -> bool {
    one.from.as_micros() == other.from.as_micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(from_ns: u64, passed: bool) -> Call {
        Call::new(Timestamp::from_nanos(from_ns), Timestamp::from_nanos(from_ns + 50), passed)
    }

    #[test]
    fn refusals_of_one_microsecond_are_one_that_stands_for_all() {
        let mut calls = Calls::default();
        for (from_ns, passed) in
            [(1_000, false), (1_400, false), (1_999, false), (2_000, false), (2_100, true), (2_200, true)]
        {
            calls.note(call(from_ns, passed));
        }
        let three = Call { refused: 3, ..call(1_999, false) };
        assert_eq!(calls.0, [three, call(2_000, false), call(2_100, true), call(2_200, true)]);
        assert_eq!(calls.0.iter().map(|call| call.n()).sum::<u64>(), 6);
    }

    #[test]
    fn a_call_that_took_longer_than_can_be_written_took_the_longest() {
        let long = Call::new(Timestamp::ZERO, Timestamp::from_millis(60_000), true);
        assert_eq!(long.to(), Timestamp::from_nanos(u32::MAX.into()));
    }

    #[test]
    fn the_calls_of_all_threads_stand_in_order() {
        let [mut one, mut two] = [Calls::default(), Calls::default()];
        one.note(call(5_000, true));
        one.note(call(9_000, false));
        two.note(call(7_000, true));
        assert_eq!(Calls::in_order([one, two]), [call(5_000, true), call(7_000, true), call(9_000, false)]);
    }
}
