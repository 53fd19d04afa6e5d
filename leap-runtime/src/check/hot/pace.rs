//! Token bucket and pacing, which are one rule: GCRA, the generic cell rate algorithm (ITU-T I.371; J. Turner's leaky
//! bucket as a virtual scheduling algorithm). Pure functions of one word, a moment and the rate.

/// Permits at a rate, in whole numbers.
///
/// The state is one word, the *theoretical arrival time*: the moment from which on nobody would know that anything
/// had passed. A permit moves it on by its cost, `interval / limit`. How far it lies ahead tells how much was taken;
/// it may lie `room` ahead, and who would go beyond that waits.
///
/// ```text
///  at rest                         word ≤ now
///  3 permits taken at once         now ─cost─cost─cost─▶ word
///  one more may start when         word + cost ≤ start + room
/// ```
///
/// Time is told in `parts` of a nanosecond, so many that the cost of usual limits is a whole number of them (that of
/// 3 per second in thirds), else in 1/256 ns, cut off: at 1 001 per second that lets 1 permit too many pass in 70 hours
/// at full rate. Intervals of over 13 days go without 256ths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    parts: u64,
    cost: u64,
    room: u64,
    /// The most permits that ever go at once.
    most: u64,
    /// In parts.
    max_wait: u64,
}

/// What a call is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Start then, and leave the word so.
    Start { start: u64, word: u64 },
    /// It would have to wait until `start`, which is too long.
    TooLong { start: u64 },
    /// So many permits never go at once.
    Never,
}

/// An age in ns up to which a word can be counted on, and moments be told in parts.
pub(super) const MAX_AGE_NS: u64 = 1 << 54;

impl Pace {
    /// A bucket of `limit + burst` permits, full at rest, refilled with `limit` per interval. Above 0, finite.
    pub(super) fn bucket(limit: f64, burst: u32, interval_ns: u64) -> Self {
        let pace = Self::of(limit, interval_ns, 0);
        let room = (interval_ns * pace.parts).saturating_add(pace.cost.saturating_mul(burst.into()));
        Self { room, most: whole(limit).saturating_add(burst.into()), ..pace }
    }

    /// One permit after the other, but `burst` at once after a rest. A call of several goes at once, up to an interval's
    /// worth, and those after it wait the longer.
    pub(super) fn turns(limit: f64, burst: u32, interval_ns: u64, max_wait_ns: u64) -> Self {
        let pace = Self::of(limit, interval_ns, max_wait_ns);
        let burst = u64::from(burst.max(1));
        Self { room: pace.cost.saturating_mul(burst), most: whole(limit).max(burst), ..pace }
    }

    fn of(limit: f64, interval_ns: u64, max_wait_ns: u64) -> Self {
        let finest = (1 << 58) / interval_ns.max(max_wait_ns).max(1 << 50);
        let (parts, cost) = match fraction(limit, interval_ns) {
            Some((cost, parts)) if parts <= finest => (parts, cost),
            _ => (finest, portion(interval_ns * finest, limit)),
        };
        Self { parts, cost: cost.max(1), room: 0, most: 0, max_wait: max_wait_ns * parts }
    }

    /// A time in parts.
    #[inline]
    pub(super) fn parts(&self, ns: u64) -> u64 {
        ns.min(MAX_AGE_NS) * self.parts
    }

    /// A time in ns, not before it.
    #[inline]
    pub(super) fn ns(&self, parts: u64) -> u64 {
        parts.div_ceil(self.parts)
    }

    /// What `n` permits are told at `now` behind `word`.
    #[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
    pub(super) fn ask(&self, word: u64, now: u64, n: u64) -> Told {
        self.ask_from(word, now, now, n)
    }

    /// What `n` permits that ask at `asked` are told behind `word`, if they start at `arrival` at the earliest.
    #[inline]
    pub(super) fn ask_from(&self, word: u64, arrival: u64, asked: u64, n: u64) -> Told {
        if n > self.most {
            return Told::Never;
        }
        // More permits than there is room for go when there is nothing before them.
        let cost = self.cost.saturating_mul(n);
        let start = arrival.max(word.saturating_sub(self.room.saturating_sub(cost)));
        if start - asked > self.max_wait {
            return Told::TooLong { start };
        }
        Told::Start { start, word: word.max(start).saturating_add(cost) }
    }

    /// When a call that would have to start at `start` is no longer told that this takes too long.
    pub(super) fn until(&self, start: u64) -> u64 {
        start - self.max_wait
    }

    /// How many permits lie ahead of `now`.
    pub(super) fn used(&self, word: u64, now: u64) -> f64 {
        approximate(word.saturating_sub(now)) / approximate(self.cost)
    }

    /// The word of a gate that has used so many permits.
    pub(super) fn word(&self, used: f64, now: u64) -> u64 {
        now.saturating_add(whole((used * approximate(self.cost)).round()))
    }

    /// Whether words of one mean the same in the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.parts, self.cost) == (other.parts, other.cost)
    }
}

/// `interval / limit` as a fraction in lowest terms, where both are whole numbers.
fn fraction(limit: f64, interval_ns: u64) -> Option<(u64, u64)> {
    if limit.fract() != 0.0 || !(1.0..=9.0e15).contains(&limit) {
        return None;
    }
    let limit = whole(limit);
    let divisor = greatest_common_divisor(interval_ns, limit);
    Some((interval_ns / divisor, limit / divisor))
}

/// `time / limit`, cut off.
fn portion(time: u64, limit: f64) -> u64 {
    if limit.fract() == 0.0 && (1.0..=9.0e15).contains(&limit) {
        time / whole(limit)
    } else {
        whole(approximate(time) / limit)
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is what is wanted"
)]
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}

#[expect(clippy::cast_precision_loss, reason = "53 bits tell a share well enough")]
pub(super) fn approximate(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// As many calls of `n` as get a turn at once, from rest; and when the last of them starts, in ns.
    fn at_once(pace: &Pace, n: u64) -> (u64, u64) {
        let (mut word, mut calls, mut last) = (0, 0, 0);
        while let Told::Start { start, word: next } = pace.ask(word, 0, n) {
            (word, calls, last) = (next, calls + 1, pace.ns(start));
        }
        (calls, last)
    }

    /// B01, B07: waits are kept in parts of a nanosecond, so the last that just fits does.
    #[test]
    fn as_many_get_a_turn_as_fit_the_longest_wait_exactly() {
        for (limit, max_wait_ms, calls, last_ns) in [
            // In lowest terms it would take 1 001ths of a nanosecond.
            (1_001.0, 500, 501, 499_500_499),
            (2_000.0, 1_000, 2_001, SECOND),
            (1_500.0, 1_000, 1_501, SECOND),
            (1_001.0, 1_000, 1_002, SECOND - 2),
            (3.0, 20_000, 61, 20 * SECOND),
            (3_000_000.0, 1_000, 3_000_001, SECOND),
            (0.2, 10_000, 3, 10 * SECOND),
            (10.0, 0, 1, 0),
        ] {
            let pace = Pace::turns(limit, 0, SECOND, max_wait_ms * 1_000_000);
            assert_eq!(at_once(&pace, 1), (calls, last_ns), "{limit}/s, {max_wait_ms} ms");
        }
    }

    /// B10.
    #[test]
    fn no_extra_permit_slips_through_when_time_moves() {
        let pace = Pace::turns(10.0, 10, SECOND, 0);
        assert_eq!(at_once(&pace, 1), (10, 0));
        let mut word = pace.parts(SECOND);
        for (ms, passes) in [(1, false), (99, false), (100, true), (101, false)] {
            let told = pace.ask(word, pace.parts(ms * 1_000_000), 1);
            if let Told::Start { word: next, .. } = told {
                word = next;
            }
            assert_eq!(matches!(told, Told::Start { .. }), passes, "{ms} ms");
        }
    }

    /// B06.
    #[test]
    fn at_most_an_intervals_worth_goes_at_once_and_those_behind_wait_for_it() {
        let pace = Pace::turns(10.0, 0, SECOND, SECOND / 2);
        assert_eq!(pace.ask(0, 0, 50), Told::Never);
        assert_eq!(pace.ask(0, 0, 11), Told::Never);
        assert_eq!(pace.ask(0, 0, 10), Told::Start { start: 0, word: pace.parts(SECOND) });
        assert_eq!(pace.ask(pace.parts(SECOND), 0, 1), Told::TooLong { start: pace.parts(SECOND) });
    }

    #[test]
    fn a_bucket_holds_limit_and_burst_and_is_refilled_with_the_limit() {
        let pace = Pace::bucket(10.0, 5, SECOND);
        assert_eq!(at_once(&pace, 1), (15, 0));
        assert_eq!(at_once(&pace, 4), (3, 0));
        assert_eq!(pace.ask(0, 0, 16), Told::Never);
        let empty = pace.parts(SECOND * 3 / 2);
        let at = |ns| pace.ask(empty, pace.parts(ns), 3);
        assert!(matches!(at(SECOND * 3 / 10 - 1), Told::TooLong { .. }));
        assert!(matches!(at(SECOND * 3 / 10), Told::Start { .. }));
    }

    #[test]
    fn the_least_and_the_greatest_rates_neither_overflow_nor_divide_by_zero() {
        const YEAR: u64 = 366 * 24 * 60 * 60 * SECOND;
        for interval in [1, SECOND, YEAR] {
            for limit in [f64::MIN_POSITIVE, 1e-9, 0.5, 1.0, 997.0, 2e9, 1e15, 1e308] {
                for max_wait in [0, SECOND, YEAR] {
                    let pace = Pace::turns(limit, 0, interval, max_wait);
                    let mut word = 0;
                    for now in [0, 1, SECOND, MAX_AGE_NS] {
                        let now = pace.parts(now);
                        if let Told::Start { start, word: next } = pace.ask(word, now, 1) {
                            assert!(start >= now && next > word, "{limit} per {interval} ns");
                            word = next;
                        }
                    }
                }
                let bucket = Pace::bucket(limit, u32::MAX, interval);
                assert!(matches!(bucket.ask(0, 0, 1), Told::Start { .. }));
            }
        }
        let rare = Pace::turns(f64::MIN_POSITIVE, 0, YEAR, YEAR);
        let Told::Start { word, .. } = rare.ask(0, 0, 1) else { panic!("the first call goes") };
        assert!(matches!(rare.ask(word, rare.parts(MAX_AGE_NS), 1), Told::TooLong { .. }));
    }

    #[test]
    fn what_was_used_is_carried_to_another_rate() {
        let (ten, twelve) = (Pace::bucket(10.0, 5, SECOND), Pace::bucket(12.0, 5, SECOND));
        let used = ten.used(ten.parts(SECOND * 3 / 2), 0);
        assert_eq!(used.to_bits(), 15_f64.to_bits());
        let word = twelve.word(used, 0);
        assert!(matches!(twelve.ask(word, 0, 2), Told::Start { .. }));
        assert_eq!(twelve.ask(word, 0, 3), Told::TooLong { start: twelve.parts(SECOND / 12) + 1 });
    }
}
