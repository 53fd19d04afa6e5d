//! Flow rules at work over one total: throttles space the calls out, windows count them.

pub(crate) mod associated;
pub(crate) mod scoped;
pub(crate) mod throttle;
pub(crate) mod warm_up;
pub(crate) mod windows;

use std::sync::Arc;

use self::throttle::{FINEST, LASTING, Throttle, Turn};
use self::windows::Windows;
use crate::blocked::Refusal;
use crate::clock::{Reading, Timestamp};
use crate::rule::{FlowRule, Mode, RuleId, RuleKind};
use crate::sync::AtomicU64;
use crate::window::LeapArray;

/// The flow rules that decide by one total, and on it.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    windows: Windows,
    throttles: Box<[Throttle]>,
    /// Those of rules that are off: their lines, and how warm they are, wait for them to be on again.
    parked: Box<[Throttle]>,
}

/// The turns that a call has taken, in the order of the throttles. Up to two of them need no allocation.
#[derive(Debug, Default)]
#[must_use = "turns that are not used are to be given back"]
pub(crate) struct Turns {
    first: Option<Turn>,
    second: Option<Turn>,
    more: Vec<Turn>,
}

impl Turns {
    fn push(&mut self, turn: Turn) {
        match (self.first, self.second) {
            (None, _) => self.first = Some(turn),
            (_, None) => self.second = Some(turn),
            _ => self.more.push(turn),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.first.is_none()
    }

    fn iter(&self) -> impl Iterator<Item = Turn> + '_ {
        self.first.into_iter().chain(self.second).chain(self.more.iter().copied())
    }
}

impl Flow {
    /// The flow of `rules`, going on from `previous`. Whose calls the rules are about plays no part here. Rules that are off
    /// decide nothing, and remember.
    pub(crate) fn new(
        rules: &[(RuleId, FlowRule)],
        previous: &Self,
        total: &AtomicU64,
        reading: &Reading<'_>,
    ) -> Self {
        Self::after(rules, previous, &[], total, reading)
    }

    /// As [`new`](Self::new). What `previous` does not know of a rule is taken over from `others`, each with the total that
    /// it decides on: there the rule stood in another role.
    pub(crate) fn after(
        rules: &[(RuleId, FlowRule)],
        previous: &Self,
        others: &[(&Self, &AtomicU64)],
        total: &AtomicU64,
        reading: &Reading<'_>,
    ) -> Self {
        Self::with_lines(rules, previous, others, total, reading, FINEST)
    }

    /// The flow of one rule that is never built anew.
    pub(crate) fn alone(rule: FlowRule, total: &AtomicU64, reading: &Reading<'_>) -> Self {
        let rules = [(RuleId::new(None, RuleKind::Flow, 0), rule.with_mode(Mode::Enforce))];
        Self::with_lines(&rules, &Self::default(), &[], total, reading, LASTING)
    }

    fn with_lines(
        rules: &[(RuleId, FlowRule)],
        previous: &Self,
        others: &[(&Self, &AtomicU64)],
        total: &AtomicU64,
        reading: &Reading<'_>,
        finest: u32,
    ) -> Self {
        let windows: Vec<_> = others.iter().map(|(other, before)| (&other.windows, *before)).collect();
        let windows = Windows::after(rules, &previous.windows, &windows, total, reading);
        let now = reading();
        let of_mode = |mode| {
            let paced = rules.iter().filter(move |(_, rule)| rule.is_paced() && rule.mode() == mode);
            paced.map(|(id, rule)| {
                let others = others.iter().map(|(other, before)| (*other, *before));
                let mut all = [(previous, total)].into_iter().chain(others);
                let standing = all.find_map(|(flow, total)| Some((flow.throttle(id)?, total)));
                Throttle::new(id.clone(), rule, standing, total, now, finest)
            })
        };
        let parked: Box<[Throttle]> = of_mode(Mode::Off).collect();
        let windows = windows.opening(parked.iter().filter_map(Throttle::ring));
        Self { windows, throttles: of_mode(Mode::Enforce).collect(), parked }
    }

    /// The throttle of that rule, also while it is off.
    fn throttle(&self, id: &RuleId) -> Option<&Throttle> {
        self.throttles.iter().chain(&self.parked).find(|throttle| throttle.id() == id)
    }

    /// Whether there is nothing to ask, and nobody to tell of what passes.
    pub(crate) fn is_idle(&self) -> bool {
        self.throttles.is_empty() && self.windows.is_idle()
    }

    /// The same flow, with what passes told to the rules of other resources that watch it.
    pub(crate) fn watched_by(self, watched: Box<[Arc<LeapArray>]>) -> Self {
        Self { windows: self.windows.watched_by(watched), ..self }
    }

    /// The first rule by which calls may have to wait.
    pub(crate) fn paced_by(&self) -> Option<&RuleId> {
        self.throttles.first().map(Throttle::id)
    }

    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Whether calls may have to wait for their turn.
    #[inline]
    pub(crate) fn is_paced(&self) -> bool {
        !self.throttles.is_empty()
    }

    /// Whether no line reaches beyond `now`, as none does in a new flow.
    pub(crate) fn has_no_line(&self, now: Timestamp) -> bool {
        self.throttles.iter().all(|throttle| throttle.next_start() <= now)
    }

    /// Whether it is to be built anew, because something in it will not be able to tell the time for long.
    pub(crate) fn is_worn_out(&self, now: Timestamp) -> bool {
        let mut throttles = self.throttles.iter().chain(&self.parked);
        self.windows.is_worn_out(now) || throttles.any(|throttle| throttle.is_worn_out(now))
    }

    /// What a call of `n` permits would be told; takes nothing.
    pub(crate) fn peek(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'_>> {
        patiently(now, reading, |now| self.start(total, now, now, n))?;
        self.windows.peek(total, now, n, reading)
    }

    /// Whether the throttles have a turn for a call of `n` permits that is on its way in; takes none. That it would have to
    /// wait is told to pace that warms up, as when the turn is taken: whatever refuses the call after this.
    pub(crate) fn ask_turns(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        n: u64,
        reading: &Reading<'_>,
    ) -> Result<(), Refusal<'_>> {
        if self.is_paced() {
            let waits = patiently(now, reading, |now| Ok(self.start(total, now, now, n)? > now));
            if !matches!(waits, Ok(false)) {
                self.note_demand(total, now);
            }
            waits?;
        }
        Ok(())
    }

    /// Takes a turn of every throttle, so that the call starts when all let it, but not before `at_least`; says when, if
    /// that is not now. `turns` then holds what was taken, and is left as it was if one says no.
    ///
    /// No wait exceeds the longest of any of the rules. `total` is what the flow is asked about, for a pace that warms up.
    pub(crate) fn take_turns(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        at_least: Timestamp,
        n: u64,
        turns: &mut Turns,
        reading: &Reading<'_>,
    ) -> Result<Option<Timestamp>, Refusal<'_>> {
        patiently(now, reading, |now| self.try_turns(total, now, at_least, n, turns))
    }

    fn try_turns(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        at_least: Timestamp,
        n: u64,
        turns: &mut Turns,
    ) -> Result<Option<Timestamp>, Refusal<'_>> {
        'again: loop {
            let mut start = now.max(at_least);
            if self.throttles.len() > 1 {
                // The call takes its turn everywhere at the moment at which it starts, or it would be too close to the
                // one before where it could have started earlier.
                start = self.start(total, now, start, n).inspect_err(|_| self.note_demand(total, now))?;
            }
            let mut taken = Turns::default();
            for (i, throttle) in self.throttles.iter().enumerate() {
                match throttle.take(start, now, n, throttle.rate(total, now)) {
                    Ok((turn, at)) => {
                        taken.push(turn);
                        if i > 0 && at > start {
                            // Somebody was faster, and those before have to move too.
                            self.give_back(&taken);
                            continue 'again;
                        }
                        start = at;
                    }
                    Err(refusal) => {
                        self.give_back(&taken);
                        self.note_demand(total, now);
                        return Err(refusal);
                    }
                }
            }
            *turns = taken;
            if start <= now {
                return Ok(None);
            }
            self.note_demand(total, now);
            return Ok(Some(start));
        }
    }

    /// Gives turns of this flow back that were not used, as far as nobody has queued behind them.
    pub(crate) fn give_back(&self, turns: &Turns) {
        for (throttle, turn) in self.throttles.iter().zip(turns.iter()) {
            throttle.give_back(turn);
        }
    }

    /// Adds up to `n` permits without asking, as [`Windows::charge`] does.
    pub(crate) fn charge(&self, total: &AtomicU64, n: u64, clock: &Reading<'_>) -> u64 {
        if self.is_paced() {
            let now = clock();
            self.throttles.iter().for_each(|throttle| throttle.open(total, now));
        }
        self.windows.charge(total, n, clock)
    }

    /// When a call could start by all throttles, if none refuses it, and not before `at_least`.
    pub(crate) fn start(
        &self,
        total: &AtomicU64,
        now: Timestamp,
        at_least: Timestamp,
        n: u64,
    ) -> Result<Timestamp, Refusal<'_>> {
        let mut start = now.max(at_least);
        for throttle in &self.throttles {
            start = throttle.peek(start, now, n, throttle.rate(total, now))?;
        }
        if self.throttles.len() > 1 {
            // What a later one makes of it may be too long for an earlier one.
            for throttle in &self.throttles {
                throttle.peek(start, now, n, throttle.rate(total, now))?;
            }
        }
        Ok(start)
    }

    /// Tells pace that warms up of a call that could not start at once.
    #[cold]
    pub(crate) fn note_demand(&self, total: &AtomicU64, now: Timestamp) {
        self.throttles.iter().for_each(|throttle| throttle.note_demand(total, now));
    }
}

/// Asks by the reading that a call brings with it. That may be old by now, because the thread had to stand aside for
/// others, who have taken their turns meanwhile: then what would come too late by it is asked again by a reading of this
/// moment.
pub(crate) fn patiently<'a, T>(
    mut now: Timestamp,
    reading: &Reading<'_>,
    mut ask: impl FnMut(Timestamp) -> Result<T, Refusal<'a>>,
) -> Result<T, Refusal<'a>> {
    loop {
        let refusal = match ask(now) {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        let fresh = refusal.until.map(|until| (until, reading())).filter(|(until, fresh)| until <= fresh);
        match fresh {
            Some((_, fresh)) if fresh > now => now = fresh,
            _ => return Err(refusal),
        }
    }
}

#[cfg(all(test, leap_loom))]
mod models;
#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
