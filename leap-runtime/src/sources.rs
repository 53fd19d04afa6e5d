//! Rules loaded, changed, compared and taken back while calls run.

use std::sync::Arc;

use crate::environment::Environment;
use crate::event::LoadReport;
use crate::history::{Counts, RuleAction, RuleEvent};
use crate::registry::Registry;
use crate::resource::{Loaded, Resource};
use crate::rule::pattern::{Globs, canonical, exactly, is_glob, literally};
use crate::rule::{
    Cut, LOADED, LoadError, Mode, NamedRule, Rejection, Rule, RuleChange, RuleError, RuleSet, SHADOW,
    source_name,
};
use crate::rulebook::{Chapter, Rulebook};

/// A place that rules come from: a file, an API, the application itself.
///
/// Sources are in the order in which they were first asked for, and a later one is stronger: its rules replace those of the
/// same kind that weaker ones, and attributes, have for a resource. Taking them away brings those back. Several rules of one
/// kind from one source hold together.
///
/// A change is all or nothing, and holds from the next call on: each call goes by the rules before it or by those after it.
/// A change that changes nothing is no event, and makes no version.
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, LoadError, Registry, RuleSet};
///
/// let registry = Registry::new();
/// let (file, api) = (registry.source("limits.toml"), registry.source("api"));
/// let limit = |qps| FlowRule::new(qps, Behavior::Reject);
///
/// file.load(RuleSet::new().named("create", "orders.create", limit(100.0)?))?;
/// api.load(RuleSet::new().flow("orders.create", limit(1.0)?))?;
/// let first = registry.enter("orders.create")?;
/// assert_eq!(registry.enter("orders.create").unwrap_err().limit(), Some(1.0));
///
/// api.load(RuleSet::new())?;
/// assert!(registry.enter("orders.create").is_ok());
/// let version = file.patch("create", |_| Ok(limit(200.0)?.into()))?.version();
/// assert_eq!(
///     file.if_version(version - 1).remove("create").unwrap_err(),
///     LoadError::Conflict { expected: version - 1, found: version }
/// );
/// registry.rollback(version - 1)?;
/// # drop(first); Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Source {
    registry: Registry,
    name: &'static str,
    expected: Option<u64>,
    note: Option<String>,
}

impl Source {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its rules.
    pub fn rules(&self) -> RuleSet {
        self.registry.rules().book().of(self.name).map_or_else(RuleSet::new, |chapter| chapter.rules.clone())
    }

    /// Has changes through this refused unless the registry's rules are at `version` when they are made.
    #[must_use]
    pub fn if_version(&self, version: u64) -> Self {
        Self { expected: Some(version), ..self.clone() }
    }

    /// Has changes through this told with a note in the [audit](Registry::audit) list: who, why.
    #[must_use]
    pub fn note(&self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self.clone() }
    }

    /// Puts `rules` in the place of all that it has.
    ///
    /// A rule that keeps its id, or its place among those of its kind for the same resource, keeps its live state: a breaker
    /// stays open, what passed before counts on. Where that cannot be, [it is said](RuleChange::state) in the report.
    ///
    /// # Errors
    ///
    /// [`LoadError::Rejected`] with all that is wrong: a name that is empty or over 1 KiB, an id that is given twice, a rule
    /// of the system for a resource. [`LoadError::Conflict`] if another version stands than [expected](Self::if_version).
    pub fn load(&self, rules: RuleSet) -> Result<LoadReport, LoadError> {
        // Once: what is loaded does not depend on what stands when its turn comes.
        let chapter = self.chapter(rules.sharing(self.registry.rules().book().rules_of(self.name)));
        self.change(RuleAction::Load, |_| chapter.clone())
    }

    /// Puts the rules that `rules` has for this resource, or pattern of resources, in the place of those that it has. All
    /// others stay.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); and if `rules` has any for something else.
    pub fn load_resource(&self, resource: &str, rules: &RuleSet) -> Result<LoadReport, LoadError> {
        let name = canonical(resource);
        self.change(RuleAction::LoadResource(resource.to_owned()), |before| {
            let others = rules.iter().filter(|rule| rule.resource() != Some(&name));
            let rejections: Vec<_> = others
                .map(|rule| {
                    rule.rejection("resource", format!("the rules are loaded for `{}` only", Cut(resource)))
                })
                .collect();
            if !rejections.is_empty() {
                return Err(LoadError::Rejected(rejections));
            }
            let mut after = before.clone();
            after.take_over(resource, rules);
            self.chapter(after)
        })
    }

    /// Adds a rule under an id for a resource, or for those that match. All others stay. A version in shadow may have the id
    /// of the rule that it is to follow.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn add(&self, id: &str, resource: &str, rule: impl Into<Rule>) -> Result<LoadReport, LoadError> {
        let rule = rule.into();
        self.change(RuleAction::Add(id.to_owned()), |before| {
            self.chapter(before.clone().named(id, resource, rule.clone()))
        })
    }

    /// Puts what `patch` makes of the rule that is [found](RuleSet::find) by `id` in its place. It may be called several times
    /// if others change rules meanwhile.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`]; [`LoadError::Rejected`] with the error of `patch`, or if it makes a rule of another kind of
    /// it; [`LoadError::Conflict`].
    pub fn patch(
        &self,
        id: &str,
        mut patch: impl FnMut(Rule) -> Result<Rule, RuleError>,
    ) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::Patch(id.to_owned()), |before| {
            let old = found(before.find(id), id)?;
            let reject = |reason: String| {
                LoadError::Rejected(vec![Rejection { field: None, ..old.rejection("", reason) }])
            };
            let new = patch(old.rule().clone()).map_err(|error| reject(error.to_string()))?;
            if new.kind() != old.rule().kind() {
                let (old, new) = (old.rule().kind().name(), new.kind().name());
                return Err(reject(format!("a patch cannot make a rule of kind {new} of one of kind {old}")));
            }
            self.chapter(before.with(old, Some(new)))
        })
    }

    /// As [`patch`](Self::patch), with new values for some words of the rule.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`]; [`LoadError::Rejected`] with every mistake in the new values, or in what they make of the
    /// rule; [`LoadError::Conflict`].
    #[cfg(feature = "serde")]
    pub fn patch_words(&self, id: &str, patch: &crate::rule::RulePatch) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::Patch(id.to_owned()), |before| {
            let old = found(before.find(id), id)?;
            self.chapter(before.with(old, Some(old.patched(patch)?)))
        })
    }

    /// Takes the rule away that is [found](RuleSet::find) by `id`.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`], [`LoadError::Conflict`].
    pub fn remove(&self, id: &str) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::Remove(id.to_owned()), |before| {
            self.chapter(before.with(found(before.find(id), id)?, None))
        })
    }

    /// Puts the rule that is [found](RuleSet::find) by `id` into another mode.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`], [`LoadError::Conflict`]; [`LoadError::Rejected`] if there is another version of it there.
    pub fn set_mode(&self, id: &str, mode: Mode) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::SetMode(id.to_owned(), mode), |before| {
            let old = found(before.find(id), id)?;
            if let (Some(_), Some(_)) = before.both_versions(id)
                && old.is_shadow() != (mode == Mode::Shadow)
            {
                let reason = "there is another version of it in that mode: exchange them by `promote` or `demote`, or \
                              remove one";
                return Err(LoadError::Rejected(vec![old.rejection("mode", reason)]));
            }
            self.chapter(before.with(old, Some(old.rule().clone().with_mode(mode))))
        })
    }

    /// Has the version in shadow of the rule `id` decide from now on. One that was there so far, deciding or off, goes into
    /// shadow in its place, so that they can be told apart further, and [changed back](Self::demote).
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`] if no rule of that id is in shadow; [`LoadError::Conflict`].
    pub fn promote(&self, id: &str) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::Promote(id.to_owned()), |before| {
            let (standing, shadow) = before.both_versions(id);
            let base = id.strip_suffix(SHADOW).unwrap_or(id);
            self.chapter(before.exchanged(standing, Some(found(shadow, &format!("{base}{SHADOW}"))?)))
        })
    }

    /// Has the rule `id`, which decides, go into shadow. A version that was in shadow decides from now on in its place.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownRule`] if no rule of that id decides; [`LoadError::Conflict`].
    pub fn demote(&self, id: &str) -> Result<LoadReport, LoadError> {
        self.change(RuleAction::Demote(id.to_owned()), |before| {
            let (standing, shadow) = before.both_versions(id);
            let deciding = standing.filter(|standing| standing.rule().mode() == Mode::Enforce);
            self.chapter(before.exchanged(Some(found(deciding, id)?), shadow))
        })
    }

    /// As [`Registry::rollback`], of the rules of all sources, told under the name of this one: with its
    /// [note](Self::note), and if the [expected](Self::if_version) version stands.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownVersion`], [`LoadError::Conflict`].
    pub fn rollback(&self, version: u64) -> Result<LoadReport, LoadError> {
        let (source, note) = (Some(self.name), self.note.clone());
        self.registry.change(Order { action: RuleAction::Rollback(version), source, note }, |book| {
            self.expect(book)?;
            self.registry.rolled_back(book, version)
        })
    }

    /// What [loading](Self::load) `rules` would say. Changes nothing, and is told to nobody.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn validate(&self, rules: &RuleSet) -> Result<LoadReport, LoadError> {
        let before = self.registry.rules().book();
        self.expect(&before)?;
        let after = before.with(self.chapter(rules.clone())?);
        let (changes, kept) = after.changes_since(&before);
        let notes = notes(&changes, self.registry.environment());
        Ok(LoadReport { version: before.version, changes, kept, notes })
    }

    fn change(
        &self,
        action: RuleAction,
        mut make: impl FnMut(&RuleSet) -> Result<Arc<Chapter>, LoadError>,
    ) -> Result<LoadReport, LoadError> {
        let (source, note) = (Some(self.name), self.note.clone());
        self.registry.change(Order { action, source, note }, |book| {
            self.expect(book)?;
            Ok(book.with(make(book.rules_of(self.name))?))
        })
    }

    /// These rules as its own, if nothing is wrong with them.
    fn chapter(&self, rules: RuleSet) -> Result<Arc<Chapter>, LoadError> {
        let rejections = rules.check();
        if !rejections.is_empty() {
            return Err(LoadError::Rejected(rejections));
        }
        Ok(Arc::new(Chapter::new(self.name, rules)))
    }

    fn expect(&self, book: &Rulebook) -> Result<(), LoadError> {
        match self.expected {
            Some(expected) if expected != book.version => {
                Err(LoadError::Conflict { expected, found: book.version })
            }
            _ => Ok(()),
        }
    }
}

fn found<'a>(rule: Option<&'a NamedRule>, id: &str) -> Result<&'a NamedRule, LoadError> {
    rule.ok_or_else(|| LoadError::UnknownRule(id.to_owned()))
}

/// A change that somebody asks for.
struct Order {
    action: RuleAction,
    source: Option<&'static str>,
    note: Option<String>,
}

impl Order {
    fn done(self, version: u64, outcome: Result<Counts, LoadError>, environment: &Environment) -> RuleEvent {
        let Self { action, source, note } = self;
        RuleEvent { action, source, note, version, at: environment.now(), wall: environment.wall(), outcome }
    }
}

/// Rules from outside.
impl Registry {
    /// The source of that name. When it is asked for first, it becomes the strongest.
    ///
    /// Names are few: each is kept as long as the process lives.
    pub fn source(&self, name: &str) -> Source {
        let rules = self.rules();
        let name = source_name(name);
        // Most are there, and are not to wait for a load that goes on.
        if rules.book().of(name).is_none() {
            let _changing = rules.history();
            let book = rules.book();
            if book.of(name).is_none() {
                let (version, chapter) = (book.version, Arc::new(Chapter::new(name, RuleSet::new())));
                rules.publish(Arc::new(Rulebook { version, ..book.with(chapter) }));
            }
        }
        Source { registry: self.clone(), name, expected: None, note: None }
    }

    /// The names of the sources that were asked for, the weakest first.
    pub fn sources(&self) -> Vec<&'static str> {
        self.rules().book().sources.iter().map(|chapter| chapter.source).collect()
    }

    /// Puts `rules` in the place of those loaded before, as [`Source::load`] does: they are those of the source `loaded`.
    ///
    /// A loaded rule replaces *all* rules of its kind that attributes gave the resource; loading a set without it
    /// brings them back. The [kinds](crate::RuleKind) are flow, isolation, hot, authority, and each strategy of a breaker
    /// for itself: slow ratio, error ratio, error count. So a loaded hot rule also puts aside those of other keys. If no
    /// call gives its key it limits nothing, and the calls are [missing](crate::HotStats::missing) in
    /// [`ResourceStats::hot`](crate::ResourceStats::hot).
    ///
    /// A rule in the same place as before keeps its live state where it fits: a breaker of the same
    /// window stays open. What passed before counts on in the windows of a rule that keeps its place and interval, and
    /// in windows of a shape that stood already (the same interval and buckets, or exact ones, which remember as many
    /// permits as the largest exact limit so far). Any other window starts empty.
    ///
    /// # Errors
    ///
    /// [`LoadError::Rejected`] with all that is wrong, see [`Source::load`]. Then nothing is replaced.
    pub fn load(&self, rules: RuleSet) -> Result<LoadReport, LoadError> {
        self.source(LOADED).load(rules)
    }

    /// The rules loaded last by [`load`](Self::load).
    pub fn loaded(&self) -> RuleSet {
        self.rules().book().rules_of(LOADED).clone()
    }

    /// The version of the rules from outside: the number of changes so far.
    pub fn version(&self) -> u64 {
        self.rules().book().version
    }

    /// What made the versions that can be taken [back](Self::rollback) or [compared](Self::diff), the oldest first: the
    /// present one and up to 16 before it.
    pub fn versions(&self) -> Vec<RuleEvent> {
        self.rules().history().versions()
    }

    /// The last 256 changes of the rules, those included that were refused, the oldest first.
    pub fn audit(&self) -> Vec<RuleEvent> {
        self.rules().history().events()
    }

    /// How many changes of the rules were refused.
    pub fn rejected_changes(&self) -> u64 {
        self.rules().history().rejected()
    }

    /// What differs from one version to the other, which may be the older one. Version 0 has no rule.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownVersion`] if one of them is not kept any more, or has not come yet.
    pub fn diff(&self, from: u64, to: u64) -> Result<Vec<RuleChange>, LoadError> {
        let history = self.rules().history();
        let (from, to) = (history.version(from)?, history.version(to)?);
        drop(history);
        Ok(to.changes_since(&from).0)
    }

    /// Puts the rules of all sources back to what they were at `version`. That is a version of its own, which can be taken
    /// back too.
    ///
    /// # Errors
    ///
    /// [`LoadError::UnknownVersion`] if it is not kept any more: one of the last 16 is.
    pub fn rollback(&self, version: u64) -> Result<LoadReport, LoadError> {
        let order = Order { action: RuleAction::Rollback(version), source: None, note: None };
        self.change(order, |book| self.rolled_back(book, version))
    }

    /// The rules of all sources as they were at `version`, in the place of those of `book`.
    fn rolled_back(&self, book: &Rulebook, version: u64) -> Result<Rulebook, LoadError> {
        let old = self.rules().history().version(version)?;
        let chapters = book.sources.iter().map(|chapter| match old.of(chapter.source) {
            Some(old) => Arc::clone(old),
            None => Arc::new(Chapter::new(chapter.source, RuleSet::new())),
        });
        Ok(Rulebook { version: book.version + 1, sources: chapters.collect() })
    }

    fn change(
        &self,
        order: Order,
        mut make: impl FnMut(&Rulebook) -> Result<Rulebook, LoadError>,
    ) -> Result<LoadReport, LoadError> {
        let (rules, environment) = (self.rules(), self.environment());
        loop {
            // Nobody's code is called with the lock held.
            let before = rules.book();
            let answer = make(&before);
            let mut history = rules.history();
            if !Arc::ptr_eq(&before, &rules.book()) {
                continue;
            }
            let after = match answer {
                Ok(after) => Arc::new(after),
                Err(error) => {
                    let event = order.done(before.version, Err(error.clone()), environment);
                    history.reject(event.clone());
                    drop(history);
                    environment.tell(|observer| observer.on_reject(&event));
                    return Err(error);
                }
            };
            let (changes, kept) = after.changes_since(&before);
            if changes.is_empty() {
                return Ok(LoadReport { version: before.version, kept, ..LoadReport::default() });
            }
            let mut report =
                LoadReport { version: after.version, notes: notes(&changes, environment), changes, kept };
            rules.publish(Arc::clone(&after));
            let mut loaded = self.give_out(&after, &before);
            report.notes.append(&mut loaded.notes);
            let counts =
                Counts { added: report.added(), changed: report.changed(), removed: report.removed() };
            history.push(after, order.done(report.version, Ok(counts), environment));
            drop(history);
            loaded.to_wake.wake();
            let system = environment.system();
            if system.counts() {
                // The first sample is what use of the processor is measured from.
                let now = environment.now();
                environment.sample_if_due(&system, now);
                report.notes.extend(system.notes(now));
            }
            environment.tell(|observer| observer.on_load(&report));
            return Ok(report);
        }
    }

    /// Has resources go by other rules than before: those that rules name, and those that are there and that a pattern
    /// matches. Others are given theirs when they are made.
    fn give_out(&self, after: &Rulebook, before: &Rulebook) -> Loaded {
        let mut all = Loaded::default();
        let (globs, names): (Vec<_>, Vec<_>) =
            after.touched_since(before).into_iter().partition(|pattern| is_glob(pattern));
        let globs = Globs::of(&globs);
        let mut touched: Vec<Arc<Resource>> =
            names.iter().filter_map(|pattern| Some(self.node_or_new(&literally(pattern)?))).collect();
        if !globs.is_empty() {
            let is_touched = |resource: &Arc<Resource>| {
                let name = &**resource.name();
                globs.is_match(name)
                    && names.binary_search_by(|pattern| (**pattern).cmp(&*exactly(name))).is_err()
            };
            touched.extend(self.nodes().into_iter().filter(is_touched));
        }
        for resource in touched {
            all.add(self.load_into(&resource, after));
        }
        let system = after.of_system();
        if before.of_system() != system {
            self.environment().load_system(system);
        }
        all
    }

    /// Gives a resource the rules that `book` has for it.
    pub(crate) fn load_into(&self, resource: &Resource, book: &Rulebook) -> Loaded {
        let rules = book.rules_for(resource.name());
        let (watches, to_wake) = self.watches(rules.iter().map(|(_, rule)| rule));
        let mut loaded = resource.load(book.version, book.names(resource.name()), rules, watches);
        loaded.to_wake.add(to_wake);
        for related in std::mem::take(&mut loaded.unwatched) {
            if let Some(related) = self.node(&related) {
                loaded.to_wake.add(related.unwatch());
            }
        }
        loaded
    }
}

/// What an operator should know of rules that were added or changed.
fn notes(changes: &[RuleChange], environment: &Environment) -> Vec<String> {
    let mut notes = vec![];
    let to: Vec<_> = changes.iter().filter_map(RuleChange::to).collect();
    for (i, named) in to.iter().enumerate() {
        let (name, rule) = (named.resource().unwrap_or("system"), named.rule());
        if let Rule::Flow(flow) = rule
            && flow.permits().is_none()
            && !flow.is_paced()
        {
            notes.push(format!("`{name}`: {flow}: a limit above 2147483647 per window is no limit"));
        }
        if has_wait(rule) && !environment.has_timer() {
            notes.push(format!(
                "`{name}`: {rule}: async calls that would have to wait are blocked, as there is no timer: see `Builder::sleep`"
            ));
        }
        if i > 0
            && let before = to[i - 1]
            && before.resource() == named.resource()
            && before.rule() == rule
        {
            notes.push(format!("`{name}`: {before} and {named} say the same: {rule}"));
        }
    }
    notes
}

/// Whether calls may have to wait by this rule.
fn has_wait(rule: &Rule) -> bool {
    match rule {
        Rule::Flow(rule) => rule.is_paced(),
        Rule::Isolation(rule) => !rule.queue_time().is_zero(),
        Rule::Hot(rule) => rule.max_wait().is_some(),
        Rule::Breaker(_) | Rule::Authority(_) | Rule::System(_) => false,
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rule::{Behavior, FlowRule, IsolationRule};

    /// A set by which calls of `orders.create` ask what has passed at `stock.read`.
    fn watching() -> RuleSet {
        let rule = FlowRule::new(5.0, Behavior::Reject).and_then(|rule| rule.associated("stock.read"));
        RuleSet::new().flow("orders.create", rule.unwrap())
    }

    fn is_idle(registry: &Registry, name: &str) -> bool {
        registry.node(name).unwrap().guarding() == crate::plans::Guarding::Idle
    }

    #[test]
    fn rules_that_come_too_late_for_a_new_resource_change_nothing_and_leave_nobody_counting() {
        let registry = Registry::new();
        registry.load(watching()).unwrap();
        let before = registry.rules().book();
        registry.load(RuleSet::new().isolation("orders.create", IsolationRule::new(7))).unwrap();
        assert!(is_idle(&registry, "stock.read"));
        // As by a call that had found the resource new, and is slow.
        let resource = registry.node("orders.create").unwrap();
        registry.load_into(&resource, &before).to_wake.wake();
        assert_eq!(resource.plan().rules()[0].1, IsolationRule::new(7).into());
        assert!(is_idle(&registry, "stock.read"));
    }

    #[test]
    fn rules_that_come_early_by_a_call_leave_nobody_counting_when_they_are_loaded() {
        let registry = Registry::new();
        registry.load(watching()).unwrap();
        let resource = registry.node("orders.create").unwrap();
        // As by a call that finds the book published before the rules are given out.
        let after = registry.rules().book().with(Arc::new(Chapter::new(LOADED, RuleSet::new())));
        registry.load_into(&resource, &after).to_wake.wake();
        registry.load(RuleSet::new()).unwrap();
        assert!(is_idle(&registry, "stock.read") && is_idle(&registry, "orders.create"));
    }

    #[test]
    fn a_call_in_flight_by_rules_that_are_gone_has_nobody_count_for_them() {
        let registry = Registry::new();
        registry.load(watching().isolation("orders.create", IsolationRule::new(7))).unwrap();
        assert!(!is_idle(&registry, "stock.read"));
        let entry = registry.enter("orders.create").unwrap();
        registry.load(RuleSet::new()).unwrap();
        assert!(is_idle(&registry, "stock.read"));
        drop(entry);
    }

    #[test]
    fn versions_hold_what_did_not_change_together() {
        let registry = Registry::new();
        let limit = |limit| FlowRule::new(limit, Behavior::Reject).unwrap();
        let set =
            |changed| RuleSet::new().flow("a", limit(1.0)).flow("b", limit(changed)).flow("c", limit(1.0));
        registry.load(set(1.0)).unwrap();
        let before = registry.rules().book();
        let is_shared = |name| {
            let groups = [registry.rules().book(), Arc::clone(&before)]
                .map(|book| book.rules_of(LOADED).group(name).cloned());
            groups[0].as_ref().zip(groups[1].as_ref()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
        };
        registry.load(set(2.0)).unwrap();
        assert_eq!(["a", "b", "c"].map(is_shared), [true, false, true]);
        // What is the same, but elsewhere in the set, stands there too.
        registry.load(RuleSet::new().flow("c", limit(1.0)).flow("a", limit(1.0))).unwrap();
        let order: Vec<_> = registry.loaded().iter().map(ToString::to_string).collect();
        assert_eq!(order, ["c/flow/0", "a/flow/0"]);
    }

    #[test]
    fn a_source_is_found_and_its_rules_are_read_while_somebody_changes_rules() {
        let registry = Registry::new();
        registry.load(watching()).unwrap();
        let _changing = registry.rules().history();
        let (done, is_done) = std::sync::mpsc::channel();
        let others = registry.clone();
        std::thread::spawn(move || done.send((others.loaded(), others.source(LOADED).name())));
        assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok((watching(), LOADED)));
    }
}
