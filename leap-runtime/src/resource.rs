//! A resource: its numbers, its rules and the plan made of them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::blocked::Name;
use crate::check::Plan;
use crate::clock::Timestamp;
use crate::environment::Environment;
use crate::node::Node;
use crate::rule::{Rule, RuleId};

/// What is protected, by name.
pub(crate) struct Resource {
    name: Arc<str>,
    environment: Arc<Environment>,
    node: Node,
    plan: ArcSwap<Plan>,
    /// Locked by those who change rules, never by calls.
    sources: Mutex<Sources>,
}

/// Where the rules of a resource come from.
#[derive(Debug, Default)]
struct Sources {
    attributes: Vec<Attribute>,
    loaded: Vec<Rule>,
}

/// The rules of one function's attribute.
#[derive(Clone, Copy, Debug)]
struct Attribute {
    /// Tells call sites apart that are called the same.
    site: usize,
    function: &'static str,
    rules: &'static [Rule],
}

impl Sources {
    /// The rules in force: a loaded rule replaces the attributes' rules of its kind; attributes add up.
    fn rules(&self) -> Vec<(RuleId, Rule)> {
        let is_replaced = |kind| self.loaded.iter().any(|rule| rule.kind() == kind);
        let mut rules = vec![];
        for attribute in &self.attributes {
            for rule in attribute.rules.iter().filter(|rule| !is_replaced(rule.kind())) {
                push(&mut rules, Some(attribute.function), *rule);
            }
        }
        for rule in &self.loaded {
            push(&mut rules, None, *rule);
        }
        rules
    }
}

/// Adds a rule under the id of its source, its kind, and its place among those of the same.
fn push(rules: &mut Vec<(RuleId, Rule)>, function: Option<&'static str>, rule: Rule) {
    let before = |(id, _): &&(RuleId, Rule)| id.function() == function && id.kind() == rule.kind();
    let position = rules.iter().filter(before).count();
    rules.push((RuleId::new(function, rule.kind(), position), rule));
}

impl Resource {
    pub(crate) fn new(name: Arc<str>, environment: Arc<Environment>) -> Self {
        let node = Node::new(environment.second_buckets(), environment.now());
        let (plan, sources) = (ArcSwap::from_pointee(Plan::default()), Mutex::default());
        Self { name, environment, node, plan, sources }
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
        self.plan.load()
    }

    /// Lets `act` do something to the present plan that its successors are to know of. It must call nobody's code.
    pub(crate) fn with_plan<T>(&self, act: impl FnOnce(&Plan) -> T) -> T {
        let _held = self.lock();
        act(&self.plan.load())
    }

    /// Makes the rules of a function's attribute part of this resource, once.
    pub(crate) fn attach(&self, site: usize, function: &'static str, rules: &'static [Rule]) {
        let mut sources = self.lock();
        if sources.attributes.iter().all(|attribute| attribute.site != site) {
            sources.attributes.push(Attribute { site, function, rules });
            if !rules.is_empty() {
                self.rebuild(&sources);
            }
        }
    }

    /// Replaces the loaded rules.
    pub(crate) fn load(&self, rules: &[Rule]) {
        let mut sources = self.lock();
        if sources.loaded != rules {
            sources.loaded = rules.to_vec();
            self.rebuild(&sources);
        }
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
        if self.plan.load().windows().is_worn_out(now) {
            let sources = self.lock();
            if self.plan.load().windows().is_worn_out(now) {
                self.rebuild(&sources);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        // What stands under the lock is whole at every moment, also where its holder panicked.
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called with the lock held, so that plans are published in the order of their sources.
    fn rebuild(&self, sources: &Sources) {
        let passed = self.node.passed();
        let plan = Plan::new(sources.rules(), &self.plan.load(), passed, || self.environment.now());
        let plan = Arc::new(plan);
        self.plan.store(Arc::clone(&plan));
        plan.windows().catch_up(passed, || self.environment.now());
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource")
            .field("name", &self.name)
            .field("plan", &self.plan.load())
            .finish_non_exhaustive()
    }
}

/// How a call holds its resource: through a call site that lives for ever, without touching a reference count, or
/// with one of its own.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    Static(&'static Arc<Resource>),
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
