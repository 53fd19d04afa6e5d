//! Marks that a guarded body leaves about its own call.

use std::cell::Cell;

use crate::event::Outcome;

/// What the running body has said about its call, in one plain word: nothing here reaches into an entry.
///
/// ```text
///  63         4      3        2 1        0
/// | charged    | turned away | outcome | inside |    outcome: 0 nothing said, 1 exception, 2 ignored
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks(u64);

const INSIDE: u64 = 1;
const OUTCOME: u64 = 0b110;
const FAILED: u64 = 0b010;
const IGNORED: u64 = 0b100;
const TURNED_AWAY: u64 = 0b1000;
const CHARGED: u32 = 4;

thread_local! {
    static MARKS: Cell<Marks> = const { Cell::new(Marks(0)) };
}

impl Marks {
    /// Those of a body that has said nothing yet.
    pub(crate) const INSIDE: Self = Self(INSIDE);

    /// The same, of a future that is to answer that its call was blocked: there is no other call to be marked.
    pub(crate) fn turned_away(self) -> Self {
        Self(self.0 | TURNED_AWAY)
    }

    /// Whether the future that is being polled is to answer that its call was blocked.
    #[inline]
    pub(crate) fn is_turned_away() -> bool {
        MARKS.get().0 & TURNED_AWAY != 0
    }

    /// Notes that it has heard so: what it calls from here on is not meant.
    pub(crate) fn hear_turned_away() {
        MARKS.set(Self(MARKS.get().0 & !TURNED_AWAY));
    }

    /// Those of this thread.
    pub(crate) fn here() -> Self {
        MARKS.get()
    }

    /// Makes these the marks of this thread, and returns those that were.
    #[inline]
    pub(crate) fn swap(self) -> Self {
        MARKS.replace(self)
    }

    /// Whether the body has said anything.
    #[inline]
    pub(crate) fn is_silent(self) -> bool {
        self.0 & !INSIDE == 0
    }

    /// The outcome that the body wants, if it said so.
    #[inline]
    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self.0 & OUTCOME {
            FAILED => Some(Outcome::Exception),
            IGNORED => Some(Outcome::Ignored),
            _ => None,
        }
    }

    /// Takes out the permits that the body has charged.
    pub(crate) fn take_charged(&mut self) -> u64 {
        let charged = self.0 >> CHARGED;
        self.0 &= INSIDE | OUTCOME;
        charged
    }
}

/// The guarded call whose body is running on this thread, to be marked from inside.
///
/// Outside a guarded body every method does nothing.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Outcome, Registry};
///
/// let registry = Registry::new();
/// let entry = registry.enter("orders.create")?;
/// entry.run_with(
///     || {
///         leap_runtime::current().fail();
///         "an answer that hides what went wrong"
///     },
///     |_| Outcome::Success,
/// );
/// assert_eq!(registry.stats("orders.create").unwrap().totals().exception(), 1);
/// # Ok::<(), leap_runtime::Blocked>(())
/// ```
pub fn current() -> Current {
    Current(())
}

/// See [`current`].
#[derive(Clone, Copy, Debug)]
pub struct Current(());

impl Current {
    /// Makes the call end as an exception, whatever it returns.
    pub fn fail(self) {
        mark(|marks| marks & !OUTCOME | FAILED);
    }

    /// Makes the call end without a verdict, whatever it returns.
    pub fn ignore(self) {
        mark(|marks| marks & !OUTCOME | IGNORED);
    }

    /// Adds `n` permits that are known only now (bytes, tokens) to the call, when the body returns or, in async
    /// code, at its next await. See [`Entry::charge`](crate::Entry::charge).
    pub fn charge(self, n: u64) {
        mark(|marks| {
            let charged = marks.saturating_add(n.min(u64::MAX >> CHARGED) << CHARGED) >> CHARGED << CHARGED;
            charged | marks & OUTCOME | INSIDE
        });
    }
}

fn mark(change: impl FnOnce(u64) -> u64) {
    let Marks(marks) = MARKS.get();
    if marks & INSIDE != 0 {
        MARKS.set(Marks(change(marks)));
    }
}
