//! What observers are told: blocks, transitions of breakers, rule loads, names without room, switches, and panics that were
//! contained.

use std::fmt;
use std::sync::Arc;

use crate::blocked::Blocked;
use crate::clock::Timestamp;
use crate::history::RuleEvent;
use crate::rule::{BreakerState, RuleChange, RuleId, is_name};

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

    /// Rules were loaded, patched, removed, promoted or taken back, and something has changed by it.
    ///
    /// No lock is held meanwhile, so changes that follow closely on one another may be told by their threads in another order:
    /// the later one has the higher [version](LoadReport::version).
    fn on_load(&self, report: &LoadReport) {
        let _ = report;
    }

    /// A change of the rules was refused: nothing is changed.
    fn on_reject(&self, rejected: &RuleEvent) {
        let _ = rejected;
    }

    /// A name found no room for a resource of its own: told once, and once for each resource that such names share.
    fn on_overflow(&self, overflow: &Overflow<'_>) {
        let _ = overflow;
    }

    /// Guarding was switched off, or on again: all of it, or that of one resource.
    fn on_switch(&self, switched: &Switched<'_>) {
        let _ = switched;
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

    fn on_reject(&self, rejected: &RuleEvent) {
        (**self).on_reject(rejected);
    }

    fn on_overflow(&self, overflow: &Overflow<'_>) {
        (**self).on_overflow(overflow);
    }

    fn on_switch(&self, switched: &Switched<'_>) {
        (**self).on_switch(switched);
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
    pub fn rule(&self) -> &RuleId {
        &self.rule
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

/// A name found no room for a resource of its own.
///
/// Reaching the [cap](crate::Builder::max_resources) is told once, whether or not a resource at rest made room; and each
/// resource that names share is told of when the first of them comes to it. How many came is in
/// [`Registry::roster`](crate::Registry::roster).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow<'a> {
    pub(crate) name: &'a str,
    pub(crate) shared: Option<&'a str>,
    pub(crate) max_resources: usize,
}

impl<'a> Overflow<'a> {
    /// The name, as it was given.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The resource that calls of that name share with others; none where one at rest made room.
    pub fn shared(&self) -> Option<&'a str> {
        self.shared
    }

    /// The most resources that there may be.
    pub fn max_resources(&self) -> usize {
        self.max_resources
    }

    /// Whether the name could have a resource of its own if there were room: it is not empty and has at most 1 KiB.
    pub fn is_usable(&self) -> bool {
        is_name(self.name)
    }
}

impl fmt::Display for Overflow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, shared, max_resources } = *self;
        if self.is_usable() {
            write!(f, "there are {max_resources} resources, the most there may be: ")?;
        } else {
            write!(f, "a name of {} bytes is none: ", name.len())?;
        }
        match shared {
            None => write!(f, "one at rest made room for `{name}`"),
            Some(shared) if self.is_usable() => write!(f, "`{name}` shares `{shared}`"),
            Some(shared) => write!(f, "it shares `{shared}`"),
        }
    }
}

/// Guarding was switched off, or on again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switched<'a> {
    pub(crate) resource: Option<&'a str>,
    pub(crate) is_on: bool,
}

impl<'a> Switched<'a> {
    /// The resource; none if it is all of them.
    pub fn resource(&self) -> Option<&'a str> {
        self.resource
    }

    /// Whether it is on now.
    pub fn is_on(&self) -> bool {
        self.is_on
    }
}

impl fmt::Display for Switched<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.resource {
            None => f.write_str("all guarding is switched ")?,
            Some(resource) => write!(f, "guarding of `{resource}` is switched ")?,
        }
        f.write_str(if self.is_on { "on" } else { "off" })
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

/// What a change of the rules has changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    pub(crate) version: u64,
    pub(crate) changes: Vec<RuleChange>,
    pub(crate) kept: usize,
    pub(crate) notes: Vec<String>,
}

impl LoadReport {
    /// The version of the rules from now on. It is the one before where nothing was changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The rules that were added, changed or removed, by source and resource.
    pub fn changes(&self) -> &[RuleChange] {
        &self.changes
    }

    /// Rules that did not stand before.
    pub fn added(&self) -> usize {
        self.changes.iter().filter(|change| change.from().is_none()).count()
    }

    /// Rules that stood under the same id with other values. Whether they keep their live state
    /// [is said](RuleChange::state) of each.
    pub fn changed(&self) -> usize {
        self.changes.len() - self.added() - self.removed()
    }

    /// Rules that stood before as they are now. They keep their live state.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Rules that stand no longer.
    pub fn removed(&self) -> usize {
        self.changes.iter().filter(|change| change.to().is_none()).count()
    }

    /// What an operator should know of the rules that were changed, a line each: a limit that is none, rules that say the
    /// same, a limit on calls in flight that does not see those already running, rules that the attributes of functions
    /// called so far gave and that do not hold any more.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl fmt::Display for LoadReport {
    /// A line of numbers, then a line for each change, up to 20 of them, and for each note.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More would hide what matters.
        const SHOWN: usize = 20;
        let (added, changed, removed) = (self.added(), self.changed(), self.removed());
        let Self { changes, kept, notes, .. } = self;
        write!(f, "rules: {added} added, {changed} changed, {kept} kept, {removed} removed")?;
        changes.iter().take(SHOWN).try_for_each(|change| write!(f, "\n  {change}"))?;
        if changes.len() > SHOWN {
            write!(f, "\n  and {} more", changes.len() - SHOWN)?;
        }
        notes.iter().try_for_each(|note| write!(f, "\n  {note}"))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for LoadReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut report = serializer.serialize_struct("LoadReport", 7)?;
        report.serialize_field("version", &self.version)?;
        report.serialize_field("added", &self.added())?;
        report.serialize_field("changed", &self.changed())?;
        report.serialize_field("kept", &self.kept)?;
        report.serialize_field("removed", &self.removed())?;
        report.serialize_field("changes", &self.changes)?;
        report.serialize_field("notes", &self.notes)?;
        report.end()
    }
}
