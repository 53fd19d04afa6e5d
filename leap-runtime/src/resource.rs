//! A resource: its numbers, its rules and the plan made of them.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::Guard;

use crate::blocked::Name;
use crate::check::flow::associated::{Watch, Watchers, Watches};
use crate::check::isolation::ToWake;
use crate::check::{Parts, Plan};
use crate::clock::Timestamp;
use crate::context::Context;
use crate::environment::Environment;
use crate::node::Node;
use crate::plans::{Guarding, Number, PlanHold, Plans};
use crate::rule::{FlowRule, Mode, Rule, RuleId, RuleKind};
use crate::share::{Shares, Witnesses};

/// What is protected, by name.
pub(crate) struct Resource {
    name: Arc<str>,
    environment: Arc<Environment>,
    node: Node,
    origins: Shares,
    entrances: Shares,
    plans: Plans,
    /// Whether rules from outside have been asked for.
    is_ready: AtomicBool,
    /// Locked by those who change rules, never by calls.
    sources: Mutex<Sources>,
}

/// How long statistics tell of a call.
const TOLD_FOR: Duration = Duration::from_secs(60);

/// Where the rules of a resource come from.
#[derive(Debug, Default)]
struct Sources {
    attributes: Vec<Attribute>,
    /// The version of the rules from outside that these are of.
    version: u64,
    /// Whether any of them is for exactly this name.
    is_named: bool,
    loaded: Box<[(RuleId, Rule)]>,
    /// The windows over other resources that the loaded rules ask.
    watches: Watches,
    /// The windows over this one that rules of others ask.
    watchers: Watchers,
}

/// What is to be done when rules have been loaded, with no lock held.
#[derive(Debug, Default)]
#[must_use = "those who may go on are to be woken"]
pub(crate) struct Loaded {
    pub(crate) to_wake: ToWake,
    /// What an operator should know.
    pub(crate) notes: Vec<String>,
    /// The resources of which a watch is perhaps no longer held.
    pub(crate) unwatched: Vec<Box<str>>,
}

impl Loaded {
    pub(crate) fn add(&mut self, other: Self) {
        let Self { to_wake, mut notes, mut unwatched } = other;
        self.to_wake.add(to_wake);
        self.notes.append(&mut notes);
        self.unwatched.append(&mut unwatched);
    }
}

/// The rules of one function's attribute.
#[derive(Clone, Debug)]
struct Attribute {
    /// Tells call sites apart that are called the same.
    site: usize,
    function: &'static str,
    rules: &'static [Rule],
    /// The windows over other resources that they ask.
    watches: Watches,
}

impl Sources {
    /// Whether anybody counts on this resource by its name: a function, a rule, or a rule of another one.
    fn is_wanted(&self) -> bool {
        self.is_named || !self.attributes.is_empty() || !self.watchers.windows().is_empty()
    }

    /// The rules at work: a loaded rule replaces the attributes' rules of its kind, unless it is in shadow; attributes add up.
    fn rules(&self) -> Vec<(RuleId, Rule)> {
        let is_replaced =
            |kind| self.loaded.iter().any(|(_, rule)| rule.kind() == kind && rule.mode() != Mode::Shadow);
        let mut rules = vec![];
        for attribute in &self.attributes {
            for rule in attribute.rules.iter().filter(|rule| !is_replaced(rule.kind())) {
                push(&mut rules, attribute.function, rule.clone());
            }
        }
        rules.extend(self.loaded.iter().cloned());
        rules
    }
}

/// Adds a rule under the id of its function, its kind, and its place among those of the same.
fn push(rules: &mut Vec<(RuleId, Rule)>, function: &'static str, rule: Rule) {
    let before = |(id, _): &&(RuleId, Rule)| id.function() == Some(function) && id.kind() == rule.kind();
    let position = rules.iter().filter(before).count();
    rules.push((RuleId::new(Some(function), rule.kind(), position), rule));
}

impl Resource {
    pub(crate) fn new(name: Arc<str>, environment: Arc<Environment>) -> Self {
        let node = Node::new(environment.second_buckets(), environment.now());
        let plans = Plans::new(environment.idle_plan());
        let resource = Self {
            name,
            environment,
            node,
            origins: Shares::default(),
            entrances: Shares::default(),
            plans,
            is_ready: AtomicBool::new(false),
            sources: Mutex::default(),
        };
        if resource.environment.has_checks() {
            resource.rebuild_now().wake();
        }
        resource.look_at_switch();
        resource
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    #[inline]
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    #[inline]
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    #[inline]
    pub(crate) fn plan(&self) -> Guard<Arc<Plan>> {
        self.plans.load()
    }

    /// What a plain call has to ask.
    #[inline]
    pub(crate) fn guarding(&self) -> Guarding {
        self.plans.guarding()
    }

    /// The present plan, if it lasts as long as the resource and plain calls are to ask it.
    #[inline]
    pub(crate) fn lasting(&self) -> Option<(Number, &Plan)> {
        self.plans.lasting()
    }

    /// The present plan, to be held by a call.
    pub(crate) fn hold(&self) -> PlanHold {
        self.plans.hold()
    }

    /// The plan that a call holds.
    #[inline]
    pub(crate) fn held<'a>(&'a self, hold: &'a PlanHold) -> Option<&'a Plan> {
        self.plans.held(hold)
    }

    /// Whether plain calls have nothing to ask.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.guarding() == Guarding::Idle
    }

    /// Whether guarding is switched off here.
    #[inline]
    pub(crate) fn is_off(&self) -> bool {
        self.guarding() == Guarding::Off
    }

    /// Guarding may have been switched on or off.
    pub(crate) fn look_at_switch(&self) {
        // So that what was found out last stands.
        let _held = self.lock();
        self.plans.switch(self.environment.guards(&self.name));
    }

    /// Whether nobody would miss this resource, to which nothing has happened from `since` on: nobody counts on it by its name,
    /// its statistics are empty, and a new one would decide as it does. The caller has it for itself.
    pub(crate) fn is_at_rest(&self, since: Timestamp, now: Timestamp) -> bool {
        let quiet = now.since(since);
        let plan = self.plan();
        quiet >= TOLD_FOR
            && quiet >= plan.memory()
            && plan.is_at_rest(now)
            && !self.lock().is_wanted()
            && self.environment.is_resource_on(&self.name)
    }

    /// Lets `act` do something to the present plan that its successors are to know of. It must call nobody's code.
    pub(crate) fn with_plan<T>(&self, act: impl FnOnce(&Plan) -> T) -> T {
        let _held = self.lock();
        act(&self.plan())
    }

    /// Whether the rules of that attribute are part of this resource.
    pub(crate) fn is_attached(&self, site: usize) -> bool {
        self.lock().attributes.iter().any(|attribute| attribute.site == site)
    }

    /// Makes the rules of a function's attribute part of this resource, once. `watches` are the windows over other
    /// resources that they ask.
    pub(crate) fn attach(
        &self,
        site: usize,
        function: &'static str,
        rules: &'static [Rule],
        watches: Watches,
    ) {
        let mut sources = self.lock();
        if sources.attributes.iter().all(|attribute| attribute.site != site) {
            sources.attributes.push(Attribute { site, function, rules, watches });
            if !rules.is_empty() {
                self.rebuild(sources).wake();
            }
        }
    }

    /// Whether it has the rules from outside that stood when it was made, or later ones. Until then nobody is to enter.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        // Acquire: who sees it sees the plan of these rules.
        self.is_ready.load(Ordering::Acquire)
    }

    /// Replaces the rules from outside by those of that version, unless it has later ones. `is_named` tells whether any names
    /// this resource exactly, `watches` are the windows over other resources that they ask.
    pub(crate) fn load(
        &self,
        version: u64,
        is_named: bool,
        rules: Vec<(RuleId, Rule)>,
        watches: Watches,
    ) -> Loaded {
        let mut sources = self.lock();
        let mut loaded = Loaded::default();
        let is_later = sources.version <= version;
        if is_later {
            (sources.version, sources.is_named) = (version, is_named);
        }
        // Those that are not needed, or not any more. The old plan asks the old ones: they go after the new one stands.
        let unused = if is_later && *sources.loaded != *rules {
            let before = std::mem::replace(&mut sources.loaded, rules.into());
            loaded.notes = self.notes(&before, &sources);
            let old = std::mem::replace(&mut sources.watches, watches);
            loaded.to_wake = self.rebuild(sources);
            old
        } else {
            watches
        };
        loaded.unwatched = unused.names().map(Box::from).collect();
        self.is_ready.store(true, Ordering::Release);
        loaded
    }

    /// What an operator should know of what its rules from outside have become.
    fn notes(&self, before: &[(RuleId, Rule)], sources: &Sources) -> Vec<String> {
        let (name, after) = (&self.name, &sources.loaded);
        let replacing = |rules: &[(RuleId, Rule)]| -> BTreeSet<RuleKind> {
            let replaces = |(_, rule): &&(RuleId, Rule)| rule.mode() != Mode::Shadow;
            rules.iter().filter(replaces).map(|(_, rule)| rule.kind()).collect()
        };
        let mut notes = vec![];
        let n_of_attributes = |kind: &RuleKind| {
            let attributes = sources.attributes.iter().flat_map(|attribute| attribute.rules);
            Some((kind.name(), attributes.filter(|rule| rule.kind() == *kind).count()))
                .filter(|(_, n)| *n > 0)
        };
        let (before_replaces, after_replaces) = (replacing(before), replacing(after));
        for (kind, n) in after_replaces.difference(&before_replaces).filter_map(n_of_attributes) {
            notes.push(format!(
                "`{name}`: the {kind} rules loaded replace {n} of attributes, until a load without any"
            ));
        }
        for (kind, n) in before_replaces.difference(&after_replaces).filter_map(n_of_attributes) {
            notes.push(format!(
                "`{name}`: no {kind} rule is loaded any more that decides, and {n} of attributes do"
            ));
        }
        let isolates = |rules: &[(RuleId, Rule)]| {
            let decides = |rule: &Rule| rule.kind() == RuleKind::Isolation && rule.mode() == Mode::Enforce;
            rules.iter().any(|(_, rule)| decides(rule))
        };
        let in_flight = self.node.in_flight();
        if in_flight > 0 && isolates(after) && !isolates(before) {
            notes.push(format!(
                "`{name}`: the {in_flight} calls already in flight are not in the new isolation's count"
            ));
        }
        notes
    }

    /// The window over this resource that a rule of another asks: kept up to date from now on.
    pub(crate) fn watch(&self, rule: &FlowRule) -> (Arc<Watch>, ToWake) {
        let mut sources = self.lock();
        let (watch, is_new) = sources.watchers.watch(rule);
        // One that was there is part of the plan.
        (watch, if is_new { self.rebuild(sources) } else { ToWake::default() })
    }

    /// Stops counting for rules that are gone.
    pub(crate) fn unwatch(&self) -> ToWake {
        let mut sources = self.lock();
        if sources.watchers.forget() { self.rebuild(sources) } else { ToWake::default() }
    }

    /// Makes the plan anew: what it is made of beside the rules has changed.
    pub(crate) fn rebuild_now(&self) -> ToWake {
        self.rebuild(self.lock())
    }

    /// Who counts a call beside this resource.
    pub(crate) fn witnesses(
        &self,
        context: Option<&Context>,
        origin: Option<&str>,
        now: Timestamp,
    ) -> Witnesses {
        let share = |shares: &Shares, name| shares.of(name, self.environment.second_buckets(), now);
        Witnesses {
            origin: origin.map(|origin| share(&self.origins, origin)),
            entrance: context.map(|context| share(&self.entrances, context.entrance())),
            position: context.map(|context| context.position(self.environment.tree()).child(&self.name)),
        }
    }

    pub(crate) fn origins(&self) -> &Shares {
        &self.origins
    }

    pub(crate) fn entrances(&self) -> &Shares {
        &self.entrances
    }

    /// Brings the statistics up to `now`: to be called before anything is counted at that moment.
    #[inline]
    pub(crate) fn turn(&self, now: Timestamp) {
        if self.node.is_due(now) {
            self.turn_now(now);
        }
    }

    /// Once per bucket, so this is also where a log is replaced that will not be able to tell the time for long.
    #[cold]
    fn turn_now(&self, now: Timestamp) {
        self.node.turn(now);
        if self.plan().is_worn_out(now) {
            let sources = self.lock();
            if self.plan().is_worn_out(now) {
                self.rebuild(sources).wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        // What stands under the lock is whole at every moment, also where its holder panicked.
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Under the lock, so that plans are published in the order of their sources. Whom the new one lets go on is to be woken
    /// by the caller, with no lock held.
    fn rebuild(&self, sources: MutexGuard<'_, Sources>) -> ToWake {
        let passed = self.node.passed();
        let reading = || self.environment.now();
        let previous = self.plans.load_full();
        let watches: Vec<&Watches> =
            sources.attributes.iter().map(|attribute| &attribute.watches).chain([&sources.watches]).collect();
        let parts = Parts {
            rules: sources.rules(),
            customs: self.environment.checks_of(&self.name),
            watches: &watches,
            watched: sources.watchers.windows(),
        };
        let plan = Arc::new(Plan::new(parts, &previous, passed, &reading));
        self.plans.publish(&plan, self.environment.guards(&self.name));
        let to_wake = plan.settle(&previous, passed, &reading);
        drop(watches);
        drop(sources);
        to_wake
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("name", &self.name)
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

/// How a call holds its resource: through a call site that lives for ever, without touching a reference count, or
/// with one of its own.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    Static(&'static Resource),
    Shared(Arc<Resource>),
}

impl Handle {
    pub(crate) fn to_name(&self) -> Name {
        match self {
            Self::Static(resource) => Name::Static(&resource.name),
            Self::Shared(resource) => Name::Shared(Arc::clone(&resource.name)),
        }
    }
}

impl Deref for Handle {
    type Target = Resource;

    #[inline]
    fn deref(&self) -> &Resource {
        match self {
            Self::Static(resource) => resource,
            Self::Shared(resource) => resource,
        }
    }
}
