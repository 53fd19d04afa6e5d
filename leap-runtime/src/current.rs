//! Marks that a guarded body leaves about its own call.

use std::cell::Cell;

use crate::event::Outcome;

/// What the running body has said about its call. Plain values: nothing here reaches into an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    inside: bool,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) charged: u64,
}

thread_local! {
    static MARKS: Cell<Marks> = const { Cell::new(Marks { inside: false, outcome: None, charged: 0 }) };
}

impl Marks {
    /// Those of a body that goes on with `outcome` as its last word.
    pub(crate) fn inside(outcome: Option<Outcome>) -> Self {
        Self { inside: true, outcome, charged: 0 }
    }

    /// Makes these the marks of this thread, and returns those that were.
    #[inline]
    pub(crate) fn swap(self) -> Self {
        MARKS.replace(self)
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
        self.mark(|marks| marks.outcome = Some(Outcome::Exception));
    }

    /// Makes the call end without a verdict, whatever it returns.
    pub fn ignore(self) {
        self.mark(|marks| marks.outcome = Some(Outcome::Ignored));
    }

    /// Adds `n` permits that are known only now (bytes, tokens) to the call, when the body returns or, in async
    /// code, at its next await. See [`Entry::charge`](crate::Entry::charge).
    pub fn charge(self, n: u64) {
        self.mark(|marks| marks.charged = marks.charged.saturating_add(n));
    }

    fn mark(self, change: impl FnOnce(&mut Marks)) {
        let mut marks = MARKS.get();
        if marks.inside {
            change(&mut marks);
            MARKS.set(marks);
        }
    }
}
