//! Warm-up: a limit that climbs under load and falls when there is little to do.
//!
//! It is Sentinel's `WarmUpController`, after Guava's `SmoothWarmingUp`: tokens are stored while calls are few and used
//! up by those that pass, and the more are stored the colder it is.
//!
//! ```text
//!  time per permit
//!   factor / limit |                          /      cold: as many tokens as there can be
//!                  |                      /  :
//!                  |                  /      :       the area of the slope is the warm-up period
//!        1 / limit |------------- :          :
//!                  +--------------+----------+---- tokens stored
//!                  0           warning      most
//! ```
//!
//! Whoever first asks in a turn (one interval, of at least 100 ms) works out the tokens from what passed before it, and
//! stores them with the turn in one word. So within a turn the limit stands still.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::rule::{FlowRule, Precision};
use crate::sync::{AtomicU64, Ordering};
use crate::window::Ring;

/// The shortest turn, so that turns can be counted in 32 bits for years.
const TURN_NS: u64 = 100_000_000;

/// From this turn on a word should be followed by a new one: 6.8 years at least.
const WORN_OUT: u64 = 1 << 31;

/// The figures of a rule. Permits and tokens are the same; rates are permits per interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Curve {
    limit: f64,
    factor: f64,
    warning: f64,
    most: f64,
    /// As Sentinel counts: in whole tokens, with every truncation.
    is_sentinel: bool,
    /// Permits per turn at the limit.
    refill: f64,
}

impl Curve {
    /// None where there is nothing to warm up.
    fn new(rule: &FlowRule, intervals_per_turn: u64) -> Option<Self> {
        let (period, factor) = rule.behavior().warm_up()?;
        rule.permits()?;
        let limit = rule.limit();
        let in_period = period.as_secs_f64() / rule.interval().as_secs_f64() * limit;
        let is_sentinel = rule.precision() == Precision::Sentinel;
        let (warning, above) = (in_period / (factor - 1.0), 2.0 * in_period / (1.0 + factor));
        let (warning, above) = if is_sentinel {
            ((java_int(in_period) / java_int(factor - 1.0)).trunc(), java_int(above))
        } else if above.is_normal() && (warning + above).is_finite() {
            (warning, above)
        } else {
            return None;
        };
        #[expect(clippy::cast_precision_loss, reason = "at most 10⁸")]
        let refill = limit * intervals_per_turn as f64;
        (limit > 0.0).then_some(Self { limit, factor, warning, most: warning + above, is_sentinel, refill })
    }

    /// How many permits per interval may pass with so many tokens stored.
    fn rate(&self, tokens: f64) -> f64 {
        let above = tokens - self.warning;
        if self.is_sentinel {
            if above < 0.0 {
                return self.limit;
            }
            let slope = (self.factor - 1.0) / self.limit / (self.most - self.warning);
            (1.0 / (above * slope + 1.0 / self.limit)).next_up()
        } else {
            let coldness = (above / (self.most - self.warning)).clamp(0.0, 1.0);
            self.limit / (1.0 + coldness * (self.factor - 1.0))
        }
    }

    /// The tokens when a turn begins: those at the turn that was `elapsed` turns before, less what passed, more what was
    /// stored while it was quiet. The turns between the two were idle.
    ///
    /// A turn is quiet in which less passed than does when cold, and in which nobody was refused: the traffic of a
    /// second that is refused is not little, whatever passed. Below the warning line tokens are always stored, so that
    /// there are as many as permits that were left over.
    fn after_turns(&self, tokens: f64, elapsed: u32, passed: Option<u64>, is_in_demand: bool) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "at most 2³¹ per turn")]
        let used = passed.unwrap_or(0) as f64;
        let is_quiet =
            !is_in_demand && passed.is_some() && (tokens < self.warning || used < self.refill / self.factor);
        let stored = if is_quiet { (tokens + self.refill).min(self.most) } else { tokens };
        let idle = f64::from(elapsed - 1) * self.refill;
        ((stored - used).max(0.0) + idle).min(self.most)
    }

    /// As Sentinel has it: only the turn just before counts as used, none is stored exactly at the warning line.
    fn after_turns_in_sentinel(&self, tokens: f64, elapsed: u32, used: f64) -> f64 {
        let is_quiet = used < (java_int(self.limit) / java_int(self.factor)).trunc();
        let is_stored = tokens < self.warning || (tokens > self.warning && is_quiet);
        let refill = f64::from(elapsed) * 1_000.0 * self.limit / 1_000.0;
        let stored = if is_stored { (tokens + refill).trunc() } else { tokens };
        (stored.min(self.most) - used).max(0.0)
    }
}

/// What a Java `(int)` makes of a number that is not negative.
fn java_int(value: f64) -> f64 {
    value.trunc().min(f64::from(i32::MAX))
}

/// A rule's warm-up at work.
#[derive(Debug)]
pub(super) struct WarmUp {
    curve: Curve,
    heat: Arc<Heat>,
}

/// How warm it is.
#[derive(Debug)]
struct Heat {
    /// ```text
    ///  63         32 31          0
    /// | turn        | tokens      |     all 0: nobody has asked yet
    /// ```
    ///
    /// The turn counts from `origin`; tokens are whole ones under Sentinel's precision, otherwise in parts of
    /// `u32::MAX` of the most, so that a changed limit finds the warmth it needs.
    word: AtomicU64,
    /// The last turn in which somebody was refused, or waited.
    in_demand: AtomicU64,
    /// What had passed when each of the last turns began.
    ring: Arc<Ring>,
    turn_ns: u64,
    /// The tick of the ring before the first turn.
    origin: u64,
}

impl WarmUp {
    /// The warm-up of this rule, if it has one: as warm as `previous`, otherwise cold. `previous` comes with the total that
    /// it is asked about.
    pub(super) fn new(
        rule: &FlowRule,
        previous: Option<(&Self, &AtomicU64)>,
        total: &AtomicU64,
        now: Timestamp,
    ) -> Option<Self> {
        let interval_ns = rule.interval_ns();
        let intervals_per_turn = match rule.precision() {
            Precision::Sentinel => 1,
            Precision::Exact | Precision::Strict => TURN_NS.div_ceil(interval_ns),
        };
        let turn_ns = interval_ns * intervals_per_turn;
        let curve = Curve::new(rule, intervals_per_turn)?;
        let heat = match previous {
            Some((previous, before)) => previous.heat_for(&curve, turn_ns, before, total, now),
            None => Arc::new(Heat::new(ring(turn_ns, total, now), turn_ns, total, now, None)),
        };
        Some(Self { curve, heat })
    }

    /// The warmth for another curve, or another `total` than the one `before`.
    fn heat_for(
        &self,
        curve: &Curve,
        turn_ns: u64,
        before: &AtomicU64,
        total: &AtomicU64,
        now: Timestamp,
    ) -> Arc<Heat> {
        let same_turns = self.heat.turn_ns == turn_ns;
        let same_tokens = self.curve == *curve || !(self.curve.is_sentinel || curve.is_sentinel);
        let same_total = std::ptr::eq(before, total);
        if same_turns && same_tokens && same_total && !self.is_worn_out(now) {
            return Arc::clone(&self.heat);
        }
        let ring = match same_turns {
            true if same_total => Arc::clone(&self.heat.ring),
            // Acquire: as for a new one.
            true => Arc::new(self.heat.ring.moved(before, total.load(Ordering::Acquire), now)),
            false => ring(turn_ns, total, now),
        };
        let tokens = curve.pack(self.tokens(before, now) / self.curve.most * curve.most);
        let heat = Heat::new(ring, turn_ns, total, now, Some(tokens));
        // Relaxed: see `note_demand`. Nobody else knows the new one, of which this turn is the first.
        if same_turns && self.heat.in_demand.load(Ordering::Relaxed) == self.heat.turn(before, now) {
            heat.in_demand.store(1, Ordering::Relaxed);
        }
        Arc::new(heat)
    }

    /// How many permits per interval may pass at the moment.
    pub(super) fn rate(&self, total: &AtomicU64, now: Timestamp) -> f64 {
        self.curve.rate(self.tokens(total, now))
    }

    /// As [`rate`](Self::rate), for a window: whole ones and, where Sentinel does not think otherwise, at least one.
    pub(super) fn whole_rate(&self, total: &AtomicU64, now: Timestamp) -> f64 {
        let rate = self.rate(total, now);
        // What is a whole number but for the parts in which tokens are kept is one.
        if self.curve.is_sentinel { rate.floor() } else { (rate * (1.0 + 1e-6)).floor().max(1.0) }
    }

    /// The same as a count.
    pub(super) fn permits(&self, total: &AtomicU64, now: Timestamp) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "2³¹ at most; a NaN is 0"
        )]
        {
            self.whole_rate(total, now) as u64
        }
    }

    /// Tells that calls want more at this moment than they get, so that the turn is not taken for a quiet one.
    pub(super) fn note_demand(&self, total: &AtomicU64, now: Timestamp) {
        let turn = self.heat.turn(total, now);
        // Relaxed: a note that comes late lets one turn pass for quiet. Looked at first, because it stands for all
        // but the first of a turn.
        if self.heat.in_demand.load(Ordering::Relaxed) != turn {
            self.heat.in_demand.store(turn, Ordering::Relaxed);
        }
    }

    /// Opens the turns up to now: to be called before anything is counted that does not ask.
    pub(super) fn open(&self, total: &AtomicU64, now: Timestamp) {
        self.heat.ring.open(now, total);
    }

    /// What is to be opened before anything is counted that does not ask.
    pub(super) fn ring(&self) -> &Arc<Ring> {
        &self.heat.ring
    }

    /// Whether turns can soon not be told apart any more.
    pub(super) fn is_worn_out(&self, now: Timestamp) -> bool {
        self.heat.ring.tick(now).saturating_sub(self.heat.origin) >= WORN_OUT
    }

    fn tokens(&self, total: &AtomicU64, now: Timestamp) -> f64 {
        loop {
            let turn = self.heat.turn(total, now);
            // Acquire: the turn in which it was written is open, so its base is there.
            let word = self.heat.word.load(Ordering::Acquire);
            let (seen, tokens) = (word >> 32, self.curve.unpack(word));
            if turn <= seen {
                return tokens;
            }
            // The word is of an earlier turn: whoever is first in this one works it out for all. None if a later one
            // has begun.
            let Some(tokens) = self.tokens_at(turn, seen, tokens) else { continue };
            let next = turn << 32 | u64::from(self.curve.pack(tokens));
            // Release: see above. The rest is in the word itself.
            if self.heat.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return self.curve.unpack(next);
            }
        }
    }

    /// The tokens at `turn`, when there were `tokens` at `seen`.
    fn tokens_at(&self, turn: u64, seen: u64, tokens: f64) -> Option<f64> {
        let (heat, curve) = (&*self.heat, &self.curve);
        let elapsed = u32::try_from(turn - seen).unwrap_or(u32::MAX);
        if curve.is_sentinel {
            #[expect(clippy::cast_precision_loss, reason = "at most 2³²")]
            let used = heat.passed(turn - 1, turn)? as f64;
            // The first call finds Sentinel's clock far from its zero, and as many tokens as there can be; unless
            // the warning line is at 0 too, where none are ever stored.
            let elapsed = if seen == 0 { u32::MAX } else { elapsed };
            return Some(curve.after_turns_in_sentinel(tokens, elapsed, used));
        }
        if seen == 0 {
            return Some(curve.most);
        }
        // Turns further back are forgotten: then at least as many that were idle follow.
        let passed = if u64::from(elapsed) < heat.ring.lap() { Some(heat.passed(seen, turn)?) } else { None };
        // Relaxed: see `note_demand`.
        let is_in_demand = heat.in_demand.load(Ordering::Relaxed) == seen;
        Some(curve.after_turns(tokens, elapsed, passed, is_in_demand))
    }
}

impl Curve {
    fn unpack(&self, word: u64) -> f64 {
        #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
        let tokens = f64::from(word as u32);
        if self.is_sentinel { tokens } else { tokens / f64::from(u32::MAX) * self.most }
    }

    fn pack(&self, tokens: f64) -> u32 {
        let parts =
            if self.is_sentinel { tokens } else { (tokens / self.most * f64::from(u32::MAX)).round() };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 2³², else the most"
        )]
        let parts = parts as u32;
        parts
    }
}

impl Heat {
    fn new(ring: Arc<Ring>, turn_ns: u64, total: &AtomicU64, now: Timestamp, tokens: Option<u32>) -> Self {
        // The first turn is this one, and 0 is none.
        let origin = ring.open(now, total) - 1;
        let word = tokens.map_or(0, |tokens| 1 << 32 | u64::from(tokens));
        Self { word: AtomicU64::new(word), in_demand: AtomicU64::new(0), ring, turn_ns, origin }
    }

    /// The turn of `now`, or a later one if somebody is ahead.
    fn turn(&self, total: &AtomicU64, now: Timestamp) -> u64 {
        self.ring.open(now, total).saturating_sub(self.origin).min(u64::from(u32::MAX))
    }

    /// What passed from the beginning of one turn to that of another; none if the ring is past that.
    fn passed(&self, from: u64, to: u64) -> Option<u64> {
        self.ring.between(self.origin + from, self.origin + to)
    }
}

fn ring(turn_ns: u64, total: &AtomicU64, now: Timestamp) -> Arc<Ring> {
    let passed = total.load(Ordering::Acquire);
    let turn = std::time::Duration::from_nanos(turn_ns);
    Arc::new(Ring::new(1, turn, now, passed).expect("a turn is at least 1 µs long"))
}
