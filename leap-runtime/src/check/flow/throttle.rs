//! Throttling: calls start one after another, each so long after the one before as its permits cost.
//!
//! The algorithm is the *virtual scheduling* form of the generic cell rate algorithm (GCRA, ITU-T Recommendation I.371):
//! all that is remembered is when the next call would start if nobody came early, the theoretical arrival time. A call
//! that arrives starts at that time or, if that is past, now; and moves it on by what its permits cost.
//!
//! ```text
//!  10 permits per 1 s                          0          100 ms     200 ms     300 ms
//!  calls of 1 arrive at 0, 0, 0                A B C
//!  they start                                  A          B          C
//!  theoretical arrival time: after A ──────────────────── ^
//!                            after B ─────────────────────────────── ^
//!                            after C ────────────────────────────────────────── ^
//! ```
//!
//! A `burst` of B is the same with a start up to (B − n) · cost before the theoretical time: a bucket of B permits that
//! refills at the rate. So over any span S no more than `rate · S + max(B, n)` permits start, n being the most of a call.
//!
//! Precision `sentinel` follows its `ThrottlingController` and `WarmUpRateLimiterController` to the letter: a call pays
//! *before* it starts, for its own permits, counted from the last start.

use std::sync::{Arc, PoisonError};

use super::warm_up::WarmUp;
use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{FlowRule, Precision, RuleId};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::window::Ring;

/// The unit of a line, 2⁻¹⁰ ns, in which 2·10⁹ permits per second cost 512 each.
pub(super) const FINEST: u32 = 10;

/// The unit of a line that nobody makes anew, 2⁻⁵ ns: it lasts for 18 years.
pub(super) const LASTING: u32 = 5;

/// How far a line may reach before it is asked to be followed by another: half of what a word can tell, 104 days in the
/// finest unit. Nothing is queued for as long as a quarter of it.
const WORN_OUT: u64 = 1 << 63;

/// A throttling rule at work.
#[derive(Debug)]
pub(super) struct Throttle {
    id: RuleId,
    rule: FlowRule,
    warm_up: Option<WarmUp>,
    pace: Pace,
    max_wait_ns: u64,
    line: Arc<Line>,
}

/// How starts are spaced.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// A bucket of `burst` permits, at least one; `most` permits fit at once at most.
    Even { burst: u64, most: u64 },
    /// As Sentinel does; in whole milliseconds where there is a warm-up.
    Sentinel { whole_ms: bool },
}

/// Who comes next, in one word.
///
/// In an even pace it is the theoretical arrival time of the next call, in units of 2^−`shift` ns from `origin`. Under
/// Sentinel's it is the last start in ns of the clock plus 1, or 0 before the first: `origin` and `shift` are 0 then.
///
/// The word is all there is, and moves by compare-exchange only: what it was is what the call saw that moved it. So each
/// stretch of time is given to one call, and all accesses are relaxed.
///
/// Only where the word goes back can it come to be again what it was: when turns are given back, which is when nobody is
/// behind them, and when it is repriced. So a turn is given back only to the prices that it was taken by.
#[derive(Debug)]
struct Line {
    word: AtomicU64,
    origin: Timestamp,
    shift: u32,
    /// How often the word was repriced. It changes under the lock.
    prices: AtomicU64,
    /// Held by whoever moves the word back.
    moving_back: Mutex<()>,
}

/// A place in a line: what its word was before it was taken, and is while nobody has queued behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    before: u64,
    after: u64,
    prices: u64,
}

impl Line {
    /// A moment in units of the line, as far as they can tell.
    fn units(&self, moment: Timestamp) -> u64 {
        self.scaled(moment.since_ns(self.origin))
    }

    fn scaled(&self, ns: u64) -> u64 {
        if ns.leading_zeros() >= self.shift { ns << self.shift } else { u64::MAX }
    }

    fn moment(&self, units: u64) -> Timestamp {
        Timestamp::from_nanos(self.origin.as_nanos().saturating_add(units >> self.shift))
    }
}

impl Throttle {
    /// `previous` is the same rule's throttle, or what it was before it was changed, with the total that it was asked about:
    /// those who wait there wait here.
    pub(super) fn new(
        id: RuleId,
        rule: &FlowRule,
        previous: Option<(&Self, &AtomicU64)>,
        total: &AtomicU64,
        now: Timestamp,
        finest: u32,
    ) -> Self {
        let earlier = previous.and_then(|(previous, before)| Some((previous.warm_up.as_ref()?, before)));
        let warm_up = WarmUp::new(rule, earlier, total, now);
        let max_wait = rule.behavior().max_wait().unwrap_or_default();
        let pace = match rule.precision() {
            Precision::Sentinel => Pace::Sentinel { whole_ms: rule.behavior().warm_up().is_some() },
            Precision::Exact | Precision::Strict => {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "not negative, and saturating is meant"
                )]
                let most = (rule.limit() + f64::from(rule.burst())) as u64;
                Pace::Even { burst: u64::from(rule.burst()).max(1), most: most.max(1) }
            }
        };
        let max_wait_ns = u64::try_from(max_wait.as_nanos()).unwrap_or(u64::MAX);
        let mut throttle = Self { id, rule: rule.clone(), warm_up, pace, max_wait_ns, line: Arc::default() };
        throttle.line = throttle.line_after(previous.map(|(previous, _)| previous), now, finest);
        if let Some((previous, before)) = previous {
            throttle.reprice(previous, before, total, now);
        }
        throttle
    }

    /// The line of the same shape that stands, or one that goes on where that got to.
    fn line_after(&self, previous: Option<&Self>, now: Timestamp, finest: u32) -> Arc<Line> {
        let (origin, shift) = match self.pace {
            Pace::Even { .. } => (now, self.shift(finest)),
            Pace::Sentinel { .. } => (Timestamp::ZERO, 0),
        };
        let Some(previous) = previous else { return Arc::new(Line { origin, shift, ..Line::default() }) };
        let same_word = match (previous.pace, self.pace) {
            (Pace::Even { .. }, Pace::Even { .. }) => {
                previous.line.shift == shift && !previous.is_line_worn_out(now)
            }
            (before, after) => before == after,
        };
        if same_word {
            return Arc::clone(&previous.line);
        }
        let line = Line { origin, shift, ..Line::default() };
        let next = match (previous.pace, self.pace) {
            (Pace::Even { .. }, Pace::Even { .. }) => previous.next_start(),
            // Units differ, and nothing in Sentinel's is finer than these.
            (before, _) => {
                let burst = if let Pace::Even { burst, .. } = before { burst } else { 1 };
                let price = |throttle: &Self| throttle.gap_ns().max(1);
                let next = previous.next_start();
                if previous.rule.limit() > 0.0 && self.rule.limit() > 0.0 {
                    let (next, now) = (next.as_nanos(), now.as_nanos());
                    Timestamp::from_nanos(repriced(next, now, burst, price(previous), price(self)))
                } else {
                    next
                }
            }
        };
        let word = match self.pace {
            Pace::Even { .. } => line.units(next),
            // The last start is what the next one is counted from, if it still counts.
            Pace::Sentinel { .. } if next <= now => 0,
            Pace::Sentinel { .. } => next.as_nanos().saturating_sub(self.gap_ns()) + 1,
        };
        line.word.store(word, Ordering::Relaxed);
        Arc::new(line)
    }

    /// Has the line, which goes on from `previous`, go by this rule's rate from `now` on: nobody is to wait until what
    /// passed under a slow rule is paid for at its price, nor to start right behind under a slower one.
    ///
    /// Turns that were taken before are not given back any more where that moves the line: they would be to a word that has
    /// come to be the same by other prices, with others behind it.
    fn reprice(&self, previous: &Self, before: &AtomicU64, total: &AtomicU64, now: Timestamp) {
        let (Pace::Even { .. }, Pace::Even { burst, .. }) = (self.pace, previous.pace) else { return };
        let (earlier, rate) = (previous.rate(before, now), self.rate(total, now));
        if earlier <= 0.0 || rate <= 0.0 {
            return;
        }
        let before = self.units_per_permit(previous.ns_per_permit(earlier));
        let (now, after) = (self.line.units(now), self.cost(rate));
        let _moving_back = self.line.moving_back.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: see `Line`.
        let moved = self.line.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            Some(repriced(next, now, burst, before, after)).filter(|repriced| *repriced != next)
        });
        if moved.is_ok() {
            // Release: whoever takes a turn by the new prices finds the repriced word, or a later one.
            self.line.prices.fetch_add(1, Ordering::Release);
        }
    }

    /// The finest unit, up to `finest`, in which all that can be queued is at most a quarter of the word.
    fn shift(&self, finest: u32) -> u32 {
        let Pace::Even { burst, most } = self.pace else { return 0 };
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let queued = self.ns_per_permit(self.coldest()) * burst.max(most) as f64 + self.max_wait_ns as f64;
        (0..=finest).rev().find(|shift| queued * f64::from(1_u32 << shift) < 2_f64.powi(62)).unwrap_or(0)
    }

    /// The lowest rate there is.
    fn coldest(&self) -> f64 {
        self.rule.behavior().warm_up().map_or(self.rule.limit(), |(_, factor)| self.rule.limit() / factor)
    }

    /// When a call of one permit starts next, at the earliest.
    pub(super) fn next_start(&self) -> Timestamp {
        let word = self.line.word.load(Ordering::Relaxed);
        match self.pace {
            Pace::Even { .. } => self.line.moment(word),
            Pace::Sentinel { .. } if word == 0 => Timestamp::ZERO,
            Pace::Sentinel { .. } => Timestamp::from_nanos((word - 1).saturating_add(self.gap_ns())),
        }
    }

    /// How far apart calls of one permit are under Sentinel's pace. Under a limit of 0 none starts, and what comes after it
    /// is not to wait for that.
    fn gap_ns(&self) -> u64 {
        if self.rule.limit() > 0.0 { self.cost_ns(1, self.rule.limit()) } else { 0 }
    }

    pub(super) fn id(&self) -> &RuleId {
        &self.id
    }

    /// The same rate's memory of what passed, where it warms up.
    pub(super) fn ring(&self) -> Option<&Arc<Ring>> {
        self.warm_up.as_ref().map(WarmUp::ring)
    }

    /// The permits per interval of this moment.
    pub(super) fn rate(&self, total: &AtomicU64, now: Timestamp) -> f64 {
        self.warm_up.as_ref().map_or(self.rule.limit(), |warm_up| warm_up.rate(total, now))
    }

    /// Whether these lines have to be made anew because they have got too long.
    pub(super) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.is_line_worn_out(now) || self.warm_up.as_ref().is_some_and(|warm_up| warm_up.is_worn_out(now))
    }

    fn is_line_worn_out(&self, now: Timestamp) -> bool {
        matches!(self.pace, Pace::Even { .. }) && self.line.units(now) >= WORN_OUT
    }

    /// When a call of `n` permits that arrives at `arrival` would start, after `asked`, when it asked.
    ///
    /// # Errors
    ///
    /// It would have to wait for longer than it may, or never fits.
    pub(super) fn peek(
        &self,
        arrival: Timestamp,
        asked: Timestamp,
        n: u64,
        rate: f64,
    ) -> Result<Timestamp, Refusal<'_>> {
        self.turn(self.line.word.load(Ordering::Relaxed), arrival, asked, n, rate).map(|(_, start)| start)
    }

    /// As [`peek`](Self::peek), and takes the turn.
    pub(super) fn take(
        &self,
        arrival: Timestamp,
        asked: Timestamp,
        n: u64,
        rate: f64,
    ) -> Result<(Turn, Timestamp), Refusal<'_>> {
        // Acquire: see `reprice`. At worst they are older than those the turn is taken by, and then it is not given back.
        let prices = self.line.prices.load(Ordering::Acquire);
        // Relaxed, here and below: see `Line`.
        let mut word = self.line.word.load(Ordering::Relaxed);
        loop {
            let (turn, start) = self.turn(word, arrival, asked, n, rate)?;
            match self.line.word.compare_exchange(word, turn.after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok((Turn { prices, ..turn }, start)),
                Err(found) => word = found,
            }
        }
    }

    /// Gives a turn back, unless somebody has queued behind it: the time in between is then lost, and nobody starts
    /// too early.
    pub(super) fn give_back(&self, turn: Turn) {
        let Turn { before, after, prices } = turn;
        let _moving_back = self.line.moving_back.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: it changes under the lock.
        if self.line.prices.load(Ordering::Relaxed) != prices {
            return;
        }
        // Relaxed: see `Line`. A failure says that somebody has queued.
        let _ = self.line.word.compare_exchange(after, before, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Tells the warm-up that a call at `now` could not start at once.
    pub(super) fn note_demand(&self, total: &AtomicU64, now: Timestamp) {
        if let Some(warm_up) = &self.warm_up {
            warm_up.note_demand(total, now);
        }
    }

    /// Opens what is counted for the warm-up.
    pub(super) fn open(&self, total: &AtomicU64, now: Timestamp) {
        if let Some(warm_up) = &self.warm_up {
            warm_up.open(total, now);
        }
    }

    /// What a call is told by a line whose word is `before`.
    fn turn(
        &self,
        before: u64,
        arrival: Timestamp,
        asked: Timestamp,
        n: u64,
        rate: f64,
    ) -> Result<(Turn, Timestamp), Refusal<'_>> {
        let (after, start) = match self.pace {
            Pace::Even { burst, most } => {
                let arrival = self.line.units(arrival);
                // Beyond the last unit there is no time to space anybody in.
                if rate <= 0.0 || n > most || arrival == u64::MAX {
                    return Err(self.refusal(None));
                }
                let cost = self.cost(rate);
                // A call of more than the bucket waits until it is full, and the next one pays for that.
                let early = cost.saturating_mul(burst.saturating_sub(n));
                let start = arrival.max(before.saturating_sub(early));
                (arrival.max(before).saturating_add(cost.saturating_mul(n)), self.line.moment(start))
            }
            Pace::Sentinel { .. } => {
                if rate.is_nan() || rate <= 0.0 {
                    return Err(self.refusal(None));
                }
                let expected =
                    before.checked_sub(1).map_or(0, |last| last.saturating_add(self.cost_ns(n, rate)));
                let start = self.cut(arrival).as_nanos().max(expected);
                (start.saturating_add(1), Timestamp::from_nanos(start))
            }
        };
        if start.since_ns(self.cut(asked)) > self.max_wait_ns {
            return Err(self.refusal(Some(start)));
        }
        Ok((Turn { before, after, prices: 0 }, start.max(arrival)))
    }

    /// A moment as the pace tells it.
    fn cut(&self, moment: Timestamp) -> Timestamp {
        match self.pace {
            Pace::Sentinel { whole_ms: true } => {
                Timestamp::from_nanos(moment.as_nanos() / 1_000_000 * 1_000_000)
            }
            Pace::Sentinel { whole_ms: false } | Pace::Even { .. } => moment,
        }
    }

    /// It would start at `start`, or never.
    #[cold]
    fn refusal(&self, start: Option<Timestamp>) -> Refusal<'_> {
        let by = By::Pace { rule: &self.rule, fits: start.is_some() };
        // From then on the wait is short enough, if nobody queues meanwhile.
        let short_enough = |start: Timestamp| start.as_nanos().saturating_sub(self.max_wait_ns);
        Refusal { rule: &self.id, by, until: start.map(|start| Timestamp::from_nanos(short_enough(start))) }
    }

    fn ns_per_permit(&self, rate: f64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a year is 2⁵⁵ ns")]
        let interval = self.rule.interval_ns() as f64;
        interval / rate
    }

    /// What a permit costs in units of the line, rounded up: the rate is never exceeded.
    fn cost(&self, rate: f64) -> u64 {
        self.units_per_permit(self.ns_per_permit(rate))
    }

    fn units_per_permit(&self, ns_per_permit: f64) -> u64 {
        // But for the rounding of doubles: a rate of 0.1 is a little more than a tenth, and costs 10.
        let units = ns_per_permit * f64::from(1_u32 << self.line.shift) * (1.0 - f64::EPSILON);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and saturating is meant"
        )]
        (units.ceil() as u64).max(1)
    }

    /// What `n` permits cost by Sentinel's arithmetic, in ns.
    fn cost_ns(&self, n: u64, rate: f64) -> u64 {
        #[expect(clippy::cast_precision_loss, reason = "as in Sentinel; n is 32 bits")]
        let (n, interval_ns) = (n as f64, self.rule.interval_ns() as f64);
        // Java's `Math.round`, and the order of its multiplications.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturating is meant"
        )]
        match self.pace {
            Pace::Sentinel { whole_ms: true } => {
                let ms = (n / rate * (interval_ns / 1e6) + 0.5).floor() as u64;
                ms.saturating_mul(1_000_000)
            }
            Pace::Sentinel { whole_ms: false } | Pace::Even { .. } => {
                (interval_ns * n / rate + 0.5).floor() as u64
            }
        }
    }
}

/// The theoretical arrival time, which is `next` where a permit costs `before`, if from `now` on it costs `after`.
///
/// What the bucket of `burst` permits lacks, it lacks in permits, and they come back at the new price. Those who wait keep
/// their starts; with the last of them the bucket is empty.
fn repriced(next: u64, now: u64, burst: u64, before: u64, after: u64) -> u64 {
    if next <= now || before == after {
        return next;
    }
    let ahead = next - now;
    let lacking = ahead.min(before.saturating_mul(burst));
    let waited_for = ahead - lacking;
    let lacking = (u128::from(lacking) * u128::from(after)).div_ceil(before.into());
    let ahead = u128::from(waited_for) + lacking;
    now.saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX))
}

impl Default for Line {
    fn default() -> Self {
        let (prices, moving_back) = (AtomicU64::new(0), Mutex::new(()));
        Self { word: AtomicU64::new(0), origin: Timestamp::ZERO, shift: 0, prices, moving_back }
    }
}
