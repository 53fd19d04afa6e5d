//! What observers are told: blocks, transitions of breakers, rule loads, and panics that were contained.

use std::fmt;
use std::sync::Arc;

use crate::blocked::Blocked;
use crate::clock::Timestamp;
use crate::rule::{BreakerState, RuleId};

/// How a call that was let through ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Well.
    Success,
    /// With an error that counts, or a panic.
    Exception,
    /// Completed, but no verdict: neither success nor exception to a breaker.
    Ignored,
    /// Its future was dropped, or its entry without an outcome. No response time, no verdict.
    Cancelled,
}

/// Watches a registry. Every method does nothing unless it is overridden.
///
/// An observer is called on the thread of the call that caused the event, with no lock held, so it may ask the
/// registry. It cannot change a verdict: a panic in it is contained, counted and told to the other observers.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use leap_runtime::{Observer, Registry, Transition};
///
/// #[derive(Default)]
/// struct Log(Mutex<Vec<String>>);
///
/// impl Observer for Log {
///     fn on_transition(&self, transition: &Transition<'_>) {
///         self.0.lock().unwrap().push(transition.to_string());
///     }
/// }
///
/// let log = Arc::new(Log::default());
/// let registry = Registry::builder().observer(Arc::clone(&log)).build();
/// registry.enter("orders.create")?.run(|| Ok::<_, ()>(())).unwrap();
/// assert!(log.0.lock().unwrap().is_empty());
/// # Ok::<(), leap_runtime::Blocked>(())
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A call was blocked.
    fn on_block(&self, blocked: &Blocked) {
        let _ = blocked;
    }

    /// A breaker changed its state.
    fn on_transition(&self, transition: &Transition<'_>) {
        let _ = transition;
    }

    /// Rules were loaded.
    fn on_load(&self, report: &LoadReport) {
        let _ = report;
    }

    /// A panic in code that leap calls (a predicate, another observer) was contained.
    fn on_panic(&self, panic: &ContainedPanic<'_>) {
        let _ = panic;
    }
}

impl<T: Observer + ?Sized> Observer for Arc<T> {
    fn on_block(&self, blocked: &Blocked) {
        (**self).on_block(blocked);
    }

    fn on_transition(&self, transition: &Transition<'_>) {
        (**self).on_transition(transition);
    }

    fn on_load(&self, report: &LoadReport) {
        (**self).on_load(report);
    }

    fn on_panic(&self, panic: &ContainedPanic<'_>) {
        (**self).on_panic(panic);
    }
}

/// A breaker changed its state.
#[derive(Clone, Debug)]
pub struct Transition<'a> {
    pub(crate) resource: &'a str,
    pub(crate) rule: RuleId,
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
    pub(crate) forced: bool,
    pub(crate) at: Timestamp,
    pub(crate) sequence: u64,
}

impl Transition<'_> {
    /// The resource that the breaker guards.
    pub fn resource(&self) -> &str {
        self.resource
    }

    /// The breaker's rule.
    pub fn rule(&self) -> RuleId {
        self.rule
    }

    /// The state it left.
    pub fn from(&self) -> BreakerState {
        self.from
    }

    /// The state it took.
    pub fn to(&self) -> BreakerState {
        self.to
    }

    /// Whether somebody moved it by hand: forced it open or closed, disabled or reset it.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// When, by the registry's clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Its place among the transitions of this breaker: larger than that of every one before.
    ///
    /// No lock is held while observers are told, so transitions that follow closely on one another may be told by
    /// their threads in another order.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl fmt::Display for Transition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "breaker of `{}` ({}): {} -> {}", self.resource, self.rule, self.from, self.to)?;
        if self.forced { f.write_str(", by hand") } else { Ok(()) }
    }
}

/// A panic that leap contained.
#[derive(Clone, Debug)]
pub struct ContainedPanic<'a> {
    pub(crate) place: &'static str,
    pub(crate) resource: Option<&'a str>,
    pub(crate) message: &'a str,
}

impl ContainedPanic<'_> {
    /// Where it happened: `outcome predicate`, `observer`.
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// The resource whose call it happened in, where there is one.
    pub fn resource(&self) -> Option<&str> {
        self.resource
    }

    /// The panic's message, where it is text.
    pub fn message(&self) -> &str {
        self.message
    }
}

/// What loading a rule set changed.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LoadReport {
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) kept: usize,
    pub(crate) removed: usize,
    pub(crate) notes: Vec<String>,
}

impl LoadReport {
    /// Rules that did not stand before.
    pub fn added(&self) -> usize {
        self.added
    }

    /// Rules that stood in the same place with other values. They keep their live state where it still fits.
    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Rules that stood before as they are now. They keep their live state.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Rules that stand no longer.
    pub fn removed(&self) -> usize {
        self.removed
    }

    /// What an operator should know of the rules loaded, a line each: a limit that is none, a limit on calls in
    /// flight that does not see those already running, rules that the attributes of functions called so far gave and that
    /// do not hold any more.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { added, changed, kept, removed, notes } = self;
        write!(f, "rules: {added} added, {changed} changed, {kept} kept, {removed} removed")?;
        notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}
