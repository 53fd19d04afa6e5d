//! What was done to the rules, and the versions that can be taken back.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::clock::Timestamp;
use crate::rule::{LoadError, Mode};
use crate::rulebook::Rulebook;

/// How many versions before the present one are kept.
const VERSIONS: usize = 16;
/// How many changes are told of.
const EVENTS: usize = 256;
/// How many mistakes of a change that was refused are kept: it may have been a large set.
const MISTAKES: usize = 20;

/// What was done, or tried, to the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleEvent {
    pub(crate) action: RuleAction,
    pub(crate) source: Option<&'static str>,
    pub(crate) note: Option<String>,
    pub(crate) version: u64,
    pub(crate) at: Timestamp,
    pub(crate) wall: SystemTime,
    pub(crate) outcome: Result<Counts, LoadError>,
}

/// How many rules were added, changed and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) removed: usize,
}

/// Which of the ways to change rules it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuleAction {
    /// A whole set was loaded.
    Load,
    /// The rules of this resource, or pattern of resources, were loaded.
    LoadResource(String),
    /// This rule was patched.
    Patch(String),
    /// This rule was removed.
    Remove(String),
    /// A rule was added under this id.
    Add(String),
    /// This rule was put into that mode.
    SetMode(String, Mode),
    /// The version in shadow of this rule was promoted.
    Promote(String),
    /// This rule was put into shadow.
    Demote(String),
    /// This version was taken back.
    Rollback(u64),
}

impl fmt::Display for RuleAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load => f.write_str("load"),
            Self::LoadResource(resource) => write!(f, "load of `{resource}`"),
            Self::Patch(id) => write!(f, "patch of `{id}`"),
            Self::Remove(id) => write!(f, "removal of `{id}`"),
            Self::Add(id) => write!(f, "addition of `{id}`"),
            Self::SetMode(id, mode) => write!(f, "mode `{}` of `{id}`", mode.name()),
            Self::Promote(id) => write!(f, "promotion of `{id}`"),
            Self::Demote(id) => write!(f, "demotion of `{id}`"),
            Self::Rollback(version) => write!(f, "rollback to version {version}"),
        }
    }
}

impl RuleEvent {
    /// Which of the ways to change rules it was.
    pub fn action(&self) -> &RuleAction {
        &self.action
    }

    /// The source whose rules it was to change; none for a rollback, which changes those of all.
    pub fn source(&self) -> Option<&'static str> {
        self.source
    }

    /// What was [noted](crate::Source::note) with it.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The version that came of it, or, where it was refused, that stood.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When, by the registry's clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// When, by the wall clock.
    pub fn wall(&self) -> SystemTime {
        self.wall
    }

    /// Why it was refused, if it was. The [audit](crate::Registry::audit) keeps the first 20 mistakes of it.
    pub fn error(&self) -> Option<&LoadError> {
        self.outcome.as_ref().err()
    }

    /// How many rules were added, changed and removed: none where it was refused.
    pub fn counts(&self) -> [usize; 3] {
        self.outcome
            .as_ref()
            .map_or([0; 3], |Counts { added, changed, removed }| [*added, *changed, *removed])
    }
}

impl fmt::Display for RuleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, source, note, version, outcome, .. } = self;
        write!(f, "version {version}: {action}")?;
        if let Some(source) = source {
            write!(f, " by {source}")?;
        }
        match outcome {
            Ok(Counts { added, changed, removed }) => {
                write!(f, ": {added} added, {changed} changed, {removed} removed")?;
            }
            Err(error) => write!(f, " refused: {error}")?,
        }
        match note {
            Some(note) => write!(f, " ({note})"),
            None => Ok(()),
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for RuleEvent {
    /// The action and the error as text, the time of the wall clock in ms since 1970.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let since_1970 = self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let [added, changed, removed] = self.counts();
        let mut event = serializer.serialize_struct("RuleEvent", 9)?;
        event.serialize_field("version", &self.version)?;
        event.serialize_field("action", &self.action.to_string())?;
        event.serialize_field("source", &self.source)?;
        event.serialize_field("note", &self.note)?;
        event.serialize_field("wall_ms", &u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))?;
        event.serialize_field("added", &added)?;
        event.serialize_field("changed", &changed)?;
        event.serialize_field("removed", &removed)?;
        event.serialize_field("error", &self.error().map(ToString::to_string))?;
        event.end()
    }
}

/// The rules from outside of a registry.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    book: ArcSwap<Rulebook>,
    /// Locked while the book is replaced and its rules are given to their resources, so that changes come one after
    /// another.
    history: Mutex<History>,
}

impl Rules {
    pub(crate) fn book(&self) -> Arc<Rulebook> {
        self.book.load_full()
    }

    /// Has `book` stand from now on. To be called with the history locked.
    pub(crate) fn publish(&self, book: Arc<Rulebook>) {
        self.book.store(book);
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        // What stands under the lock is whole at every moment, also where its holder panicked.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The present version and those before it, and what was done.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The oldest first.
    versions: VecDeque<(Arc<Rulebook>, Option<RuleEvent>)>,
    events: VecDeque<RuleEvent>,
    rejected: u64,
}

impl History {
    /// A version that stands from now on.
    pub(crate) fn push(&mut self, book: Arc<Rulebook>, event: RuleEvent) {
        if self.versions.is_empty() {
            // What stood before anything was loaded: no rule.
            self.versions.push_back((Arc::default(), None));
        }
        self.versions.push_back((book, Some(event.clone())));
        while self.versions.len() > VERSIONS + 1 {
            self.versions.pop_front();
        }
        self.note(event);
    }

    /// A change that was refused.
    pub(crate) fn reject(&mut self, mut event: RuleEvent) {
        self.rejected += 1;
        if let Err(LoadError::Rejected(rejections)) = &mut event.outcome {
            rejections.truncate(MISTAKES);
            rejections.shrink_to_fit();
        }
        self.note(event);
    }

    fn note(&mut self, event: RuleEvent) {
        self.events.push_back(event);
        while self.events.len() > EVENTS {
            self.events.pop_front();
        }
    }

    pub(crate) fn version(&self, version: u64) -> Result<Arc<Rulebook>, LoadError> {
        let found = self.versions.iter().find(|(book, _)| book.version == version);
        match found {
            Some((book, _)) => Ok(Arc::clone(book)),
            None if version == 0 && self.versions.is_empty() => Ok(Arc::default()),
            None => Err(LoadError::UnknownVersion(version)),
        }
    }

    /// What made the versions that are kept, the oldest first.
    pub(crate) fn versions(&self) -> Vec<RuleEvent> {
        self.versions.iter().filter_map(|(_, event)| event.clone()).collect()
    }

    /// What was done last, the oldest first.
    pub(crate) fn events(&self) -> Vec<RuleEvent> {
        self.events.iter().cloned().collect()
    }

    pub(crate) fn rejected(&self) -> u64 {
        self.rejected
    }
}
