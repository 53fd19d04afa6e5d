//! The registry: every resource by name, and the one global of the crate.

use std::cell::{LazyCell, RefCell};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use once_cell::sync::OnceCell;
use pin_project_lite::pin_project;

use crate::blocked::Blocked;
use crate::check::call::{Check, Request};
use crate::check::flow::associated::Watches;
use crate::check::isolation::ToWake;
use crate::check::system::{HostProbe, SystemProbe, SystemStats};
use crate::clock::{Clock, SystemClock};
use crate::entry::{self, Entering, Entry};
use crate::environment::{AnyClock, Environment, Settings};
use crate::event::{Observer, Switched};
use crate::history::Rules;
use crate::key::{Key, ToKey};
use crate::resource::{Handle, Resource};
use crate::roster::{Roster, RosterStats};
use crate::rule::pattern::overflow_of;
use crate::rule::{OVERFLOW, Rule, is_name};
use crate::timer::{self, Sleep};
use crate::tree::CallTree;

/// All resources, their statistics and rules. A cheap handle: clones are the same registry.
///
/// `#[guarded]` uses the registry in [scope](Self::scope), else the global one, [`registry()`].
///
/// # Examples
///
/// ```
/// use leap_runtime::{Behavior, FlowRule, ManualClock, Registry, RuleSet};
///
/// let clock = ManualClock::new();
/// let registry = Registry::builder().clock(clock.clone()).build();
/// registry.load(RuleSet::new().flow("orders.create", FlowRule::new(2.0, Behavior::Reject)?))?;
///
/// let calls: Vec<bool> = (0..3).map(|_| registry.enter("orders.create").is_ok()).collect();
/// assert_eq!(calls, [true, true, false]);
///
/// clock.advance(std::time::Duration::from_secs(1));
/// assert!(registry.enter("orders.create").is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    environment: Arc<Environment>,
    roster: Roster,
    rules: Rules,
}

// A panic leaves nothing half-done here: the roster is whole at every moment.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Default for Registry {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Registry {
    /// A registry of its own, on the system's clock.
    pub fn new() -> Self {
        Self::default()
    }

    /// A registry with another clock, other statistics or observers.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Lets a call of `resource` through, unless a rule says no.
    ///
    /// Where a rule has the call wait (a throttle, a queue), this thread is parked until its turn has come: in async code
    /// use [`enter_async`](Self::enter_async). A name that is empty or over 1 KiB long enters the resource `(overflow)`
    /// instead, and so does one that nobody counts on while there are [too many](Builder::max_resources).
    ///
    /// # Errors
    ///
    /// [`Blocked`] names the rule and, where it is known, how long to wait.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Behavior, Cause, FlowRule, Registry, RuleSet};
    ///
    /// let registry = Registry::new();
    /// registry.load(RuleSet::new().flow("orders.create", FlowRule::new(1.0, Behavior::Reject)?))?;
    /// let first = registry.enter("orders.create")?;
    /// assert_eq!(registry.enter("orders.create").unwrap_err().cause(), Cause::Flow);
    /// # drop(first); Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter(&self, resource: &str) -> Result<Entry, Blocked> {
        self.enter_with(resource).enter()
    }

    /// As [`enter`](Self::enter), for async code: where a rule has the call wait, the future does, by the timer of its
    /// executor, and holds no thread. Dropping it gives the call's turn back.
    ///
    /// # Errors
    ///
    /// [`Blocked`] names the rule and, where it is known, how long to wait. A call that would have to wait where there is no
    /// timer is blocked too: see [`Builder::sleep`].
    pub async fn enter_async(&self, resource: &str) -> Result<Entry, Blocked> {
        self.enter_with(resource).enter_async().await
    }

    /// A call of `resource` with more to say than its name.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Behavior, FlowRule, Registry, RuleSet};
    ///
    /// let registry = Registry::new();
    /// registry.load(RuleSet::new().flow("export", FlowRule::new(100.0, Behavior::Reject)?))?;
    /// let rows = registry.enter_with("export").permits(80).enter()?;
    /// assert!(registry.enter_with("export").permits(21).enter().is_err());
    /// # drop(rows); Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter_with<'a>(&'a self, resource: &'a str) -> EnterWith<'a> {
        EnterWith {
            registry: self,
            resource,
            permits: 1,
            priority: false,
            inbound: false,
            entrance: None,
            origin: None,
            keys: vec![],
        }
    }

    /// What a call of `n` permits would be told now. Takes nothing: no permit, no probe slot, and counts nothing.
    ///
    /// # Errors
    ///
    /// The [`Blocked`] that the call would get.
    pub fn would_pass(&self, resource: &str, n: u32) -> Result<(), Blocked> {
        self.enter_with(resource).permits(n).would_pass()
    }

    /// Has every call of the resources that `pattern` matches ask `check`, before their rules. In the pattern `*` stands for
    /// any text. Returns by what to [remove](Self::remove_check) it.
    ///
    /// Several checks of a resource are asked in the order in which they were added.
    pub fn add_check(&self, pattern: &str, check: impl Check) -> CheckId {
        let number = self.inner.environment.add_check(pattern, Arc::new(check));
        self.rebuild_all();
        CheckId(number)
    }

    /// Takes a check away again. Calls that it let pass still tell it their end. False if it was gone already.
    pub fn remove_check(&self, check: CheckId) -> bool {
        let was_there = self.inner.environment.remove_check(check.0);
        if was_there {
            self.rebuild_all();
        }
        was_there
    }

    /// A resource that is made meanwhile sees what its plan is to be made of: it is made under its shard's lock, through
    /// which this goes too.
    fn rebuild_all(&self) {
        for resource in self.all() {
            resource.rebuild_now().wake();
        }
    }

    /// The windows over other resources that these rules ask. Other resources are locked for it, so no lock of a resource's
    /// is to be held; whom that lets go on is to be woken with none held at all.
    ///
    /// A resource that is new is not asked for its own rules here: they may watch this one.
    pub(crate) fn watches<'a>(&self, rules: impl IntoIterator<Item = &'a Rule>) -> (Watches, ToWake) {
        let to_wake = RefCell::new(ToWake::default());
        let flow = rules.into_iter().filter_map(|rule| match rule {
            Rule::Flow(rule) => Some(rule),
            _ => None,
        });
        let watches = Watches::of(flow, |related, rule| {
            let (watch, woken) = self.node_or_new(related).watch(rule);
            to_wake.borrow_mut().add(woken);
            watch
        });
        (watches, to_wake.into_inner())
    }

    /// Who entered what in [contexts](crate::Context), with counts: entrances, the resources entered through them, and those
    /// that these entered in turn.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Context, Registry};
    ///
    /// let registry = Registry::new();
    /// Context::new("front").scope(|| {
    ///     let order = registry.enter("orders.create")?;
    ///     order.run(|| registry.enter("stock.read")?.run(|| Ok::<_, leap_runtime::Blocked>(())))
    /// })?;
    /// let tree = registry.tree();
    /// let orders = tree.entrance("front").and_then(|front| front.child("orders.create")).unwrap();
    /// assert_eq!(orders.child("stock.read").unwrap().passed(), 1);
    /// # Ok::<(), leap_runtime::Blocked>(())
    /// ```
    pub fn tree(&self) -> CallTree {
        self.inner.environment.tree().read()
    }

    /// What the rules for all inbound calls together see: the machine's figures and the calls' own.
    pub fn system(&self) -> SystemStats {
        let environment = &self.inner.environment;
        let now = environment.now();
        environment.system().figures(now)
    }

    /// Samples the machine's load and CPU now, for applications that do so themselves, by a thread or task of their own.
    ///
    /// Otherwise an inbound call takes a sample where the last one is over a second old. Nothing happens where no system
    /// rule was ever loaded.
    pub fn sample_system(&self) {
        self.inner.environment.sample_system();
    }

    /// Has `observer` told of everything that happens from now on.
    pub fn observe(&self, observer: impl Observer) {
        let observer: Arc<dyn Observer> = Arc::new(observer);
        self.inner.environment.observe(&observer);
    }

    /// How many resources there are, and what became of names that found no room.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::Registry;
    ///
    /// let registry = Registry::builder().max_resources(2).build();
    /// for user in ["ann", "bob", "cay", "dan"] {
    ///     drop(registry.enter(user)?);
    /// }
    /// assert_eq!(registry.roster().overflowed(), 2);
    /// assert_eq!(registry.stats("(overflow)").unwrap().totals().passed(), 2);
    /// # Ok::<(), leap_runtime::Blocked>(())
    /// ```
    pub fn roster(&self) -> RosterStats {
        self.inner.roster.stats()
    }

    /// Switches all guarding off: from now on calls run at once, nothing is asked, and nothing is counted, blocked or waited
    /// for. Own [checks](crate::Check) are not asked either, and contexts hold but their tree does not grow.
    ///
    /// Calls that have entered before end as they began. Those that wait go on at the end of their wait at the latest, and
    /// none of them is blocked any more. Calls that enter while it is off leave no trace, also if they end when it is on again.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Behavior, FlowRule, Registry, RuleSet};
    ///
    /// let registry = Registry::new();
    /// registry.load(RuleSet::new().flow("orders.create", FlowRule::new(0.0, Behavior::Reject)?))?;
    /// assert!(registry.enter("orders.create").is_err());
    /// registry.turn_off();
    /// assert!(registry.enter("orders.create").is_ok());
    /// registry.turn_on();
    /// assert!(registry.enter("orders.create").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn turn_off(&self) {
        self.switch(false);
    }

    /// Switches guarding on again, but for the resources that are [off](Self::turn_off_resource) themselves.
    pub fn turn_on(&self) {
        self.switch(true);
    }

    /// Whether guarding as a whole is on.
    pub fn is_on(&self) -> bool {
        self.inner.environment.is_on()
    }

    /// As [`turn_off`](Self::turn_off), for one resource, whether or not anybody has entered it yet. It is a name: a star in it
    /// stands for itself.
    pub fn turn_off_resource(&self, resource: &str) {
        self.switch_resource(resource, false);
    }

    /// Switches the guarding of one resource on again. It is guarded if guarding as a whole is on too.
    pub fn turn_on_resource(&self, resource: &str) {
        self.switch_resource(resource, true);
    }

    /// The resources that were [turned off](Self::turn_off_resource) themselves, in the order of their names.
    pub fn resources_off(&self) -> Vec<String> {
        self.inner.environment.resources_off()
    }

    /// Whether the resource itself is on: it is unless it was [turned off](Self::turn_off_resource).
    pub fn is_resource_on(&self, resource: &str) -> bool {
        self.inner.environment.is_resource_on(usable(resource))
    }

    /// A resource that is made meanwhile looks by itself, as in [`rebuild_all`](Self::rebuild_all).
    fn switch(&self, is_on: bool) {
        let environment = &self.inner.environment;
        if environment.switch(is_on) {
            self.nodes().iter().for_each(|resource| resource.look_at_switch());
            let switched = Switched { resource: None, is_on };
            environment.tell(|observer| observer.on_switch(&switched));
        }
    }

    fn switch_resource(&self, name: &str, is_on: bool) {
        let (name, environment) = (usable(name), &self.inner.environment);
        if environment.switch_resource(name, is_on) {
            if let Some(resource) = self.node(name) {
                resource.look_at_switch();
            }
            let switched = Switched { resource: Some(name), is_on };
            environment.tell(|observer| observer.on_switch(&switched));
        }
    }

    /// The panics that were contained since the start: in observers, and in predicates of `#[guarded]`.
    pub fn contained_panics(&self) -> u64 {
        self.inner.environment.contained_panics()
    }

    /// Makes this the global registry, which guarded functions use outside any [scope](Self::scope). To be called first thing
    /// in `main`, for a registry with settings of its own.
    ///
    /// # Errors
    ///
    /// [`InstallError`] if there is a global registry already: another one was installed, a guarded function was called, or
    /// [`registry()`] was.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Registry, registry};
    ///
    /// Registry::builder().hide_values().build().install()?;
    /// assert!(Registry::new().install().is_err());
    /// # registry(); Ok::<(), leap_runtime::InstallError>(())
    /// ```
    pub fn install(&self) -> Result<(), InstallError> {
        GLOBAL.set(self.clone()).map_err(|_| InstallError)
    }

    /// Runs `body` with this registry in scope: guarded functions that it calls on this thread use it instead of the
    /// global one. Spawned threads and tasks leave the scope; see [`InRegistry`] for futures.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Registry, guarded};
    ///
    /// #[guarded("greet", fallback = busy)]
    /// fn greet() -> &'static str { "hello" }
    /// fn busy(_: leap_runtime::Blocked) -> &'static str { "later" }
    ///
    /// let registry = Registry::new();
    /// assert_eq!(registry.scope(greet), "hello");
    /// assert_eq!(registry.stats("greet").unwrap().totals().passed(), 1);
    /// ```
    pub fn scope<T>(&self, body: impl FnOnce() -> T) -> T {
        /// Leaves the scope also when the body panics.
        struct Scope(Option<Registry>);
        impl Drop for Scope {
            fn drop(&mut self) {
                // It was there when the scope began, on this thread.
                let _ = SCOPED.try_with(|scoped| scoped.replace(self.0.take()));
                N_SCOPES.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // A thread that is ending has no scopes any more.
        let Ok(outer) = SCOPED.try_with(|scoped| scoped.replace(Some(self.clone()))) else { return body() };
        // Relaxed: a thread sees its own additions, and asks about no other's.
        N_SCOPES.fetch_add(1, Ordering::Relaxed);
        let _scope = Scope(outer);
        body()
    }

    /// The resource of a name that somebody counts on, made if it is new. A name that cannot be one leads to the overflow
    /// resource.
    pub(crate) fn resource(&self, name: &str) -> Arc<Resource> {
        self.made_ready(self.node_or_new(name))
    }

    /// The resource that a call of that name enters: its own where there is room.
    fn resource_of_call(&self, name: &str) -> Arc<Resource> {
        let shared = || overflow_of(&self.rules().book().globs_for(name));
        self.made_ready(self.inner.roster.enter(name, shared, |name| self.make(name)))
    }

    fn make(&self, name: Arc<str>) -> Resource {
        Resource::new(name, Arc::clone(&self.inner.environment))
    }

    /// The resource of that name, if it was made.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Resource>> {
        self.node(name).map(|resource| self.made_ready(resource))
    }

    /// All resources, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let mut all = self.nodes();
        all.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        all.into_iter().map(|resource| self.made_ready(resource)).collect()
    }

    /// Sees to it that the resource goes by the rules from outside. That is not done while it is made, as it locks others.
    #[inline]
    fn made_ready(&self, resource: Arc<Resource>) -> Arc<Resource> {
        if !resource.is_ready() {
            self.make_ready(&resource);
        }
        resource
    }

    #[cold]
    fn make_ready(&self, resource: &Resource) {
        // Rules that are loaded meanwhile are given to it too, and are later ones: see `Resource::load`.
        self.load_into(resource, &self.rules().book()).to_wake.wake();
    }

    /// The resource of that name as it is, perhaps without the rules from outside.
    pub(crate) fn node(&self, name: &str) -> Option<Arc<Resource>> {
        // The name of one that is shared may be a long one.
        let roster = &self.inner.roster;
        roster.get(name).or_else(|| if is_name(name) { None } else { roster.get(OVERFLOW) })
    }

    pub(crate) fn node_or_new(&self, name: &str) -> Arc<Resource> {
        self.inner.roster.own(usable(name), |name| self.make(name))
    }

    /// All resources as they are, in no order.
    pub(crate) fn nodes(&self) -> Vec<Arc<Resource>> {
        self.inner.roster.all()
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.inner.rules
    }
}

/// The name, or that of the overflow resource where it cannot be one.
pub(crate) fn usable(name: &str) -> &str {
    if is_name(name) { name } else { OVERFLOW }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("environment", &self.inner.environment)
            .field("resources", &self.inner.roster)
            .finish_non_exhaustive()
    }
}

/// Settings of a registry to be.
#[must_use = "a builder does nothing until it builds"]
pub struct Builder {
    clock: Option<Arc<dyn Clock>>,
    timer: Option<Box<dyn Sleep>>,
    second_buckets: u32,
    observers: Vec<Arc<dyn Observer>>,
    probe: Option<Arc<dyn SystemProbe>>,
    hides_values: bool,
    max_resources: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            clock: None,
            timer: timer::usual(),
            second_buckets: 10,
            observers: vec![],
            probe: None,
            hides_values: false,
            max_resources: 10_000,
        }
    }
}

impl Builder {
    /// Decides by `clock` instead of the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Has async calls wait by `sleep`: by tokio's timer unless given (with the feature `tokio`), else by none.
    ///
    /// A clock that [wakes](Clock::wake_at) those who wait goes before it. Where there is neither, an async call that
    /// would have to wait is blocked. Sync calls need none.
    pub fn sleep(mut self, sleep: impl Sleep) -> Self {
        self.timer = Some(Box::new(sleep));
        self
    }

    /// Cuts the last second of the statistics into so many buckets (10). Rules are not concerned.
    ///
    /// # Panics
    ///
    /// If the number does not divide a second into equal parts of at least 1 ms.
    pub fn second_buckets(mut self, n_buckets: u32) -> Self {
        assert!(
            n_buckets > 0 && 1_000 % n_buckets == 0,
            "{n_buckets} buckets do not divide 1s into equal parts of at least 1ms"
        );
        self.second_buckets = n_buckets;
        self
    }

    /// Has `observer` told of everything that happens.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Has the rules for the system go by the figures of `probe`: by those of the host and this process's quota unless
    /// given.
    pub fn system_probe(mut self, probe: impl SystemProbe) -> Self {
        self.probe = Some(Arc::new(probe));
        self
    }

    /// Shows values of hot parameters in statistics as hashes that are this process's own, and never as they are.
    pub fn hide_values(mut self) -> Self {
        self.hides_values = true;
        self
    }

    /// Has names that nobody counts on get a resource of their own only while there are fewer than so many in all (10 000).
    ///
    /// A name that a guarded function has, that a rule names exactly, that a rule of another resource watches, or that was
    /// [turned off](Registry::turn_off_resource), always has a resource of its own, which takes up room like any. Where there is
    /// none for another name, one at rest makes room: nobody is in it, nothing was counted in it for a minute, nor for
    /// as long as its rules look back, and its breakers are closed. Where none is found, the call enters a resource that all
    /// such names share, `(overflow)`, and is counted there; rules for `(overflow)` hold for them together. A name that gets
    /// room later starts anew. Observers are [told](Observer::on_overflow), and [`Registry::roster`] counts.
    ///
    /// # Panics
    ///
    /// If the number is 0.
    pub fn max_resources(mut self, n: usize) -> Self {
        assert!(n > 0, "0 resources leave no room for any name");
        self.max_resources = n;
        self
    }

    /// The registry.
    pub fn build(self) -> Registry {
        let environment = Environment::new(Settings {
            clock: self.clock.map_or_else(|| AnyClock::System(SystemClock::default()), AnyClock::Other),
            timer: self.timer,
            second_buckets: self.second_buckets,
            observers: self.observers,
            probe: self.probe.unwrap_or_else(|| Arc::new(HostProbe::new())),
            hides_values: self.hides_values,
        });
        let environment = Arc::new(environment);
        let roster = Roster::new(self.max_resources, Arc::clone(&environment));
        let inner = Inner { environment, roster, rules: Rules::default() };
        Registry { inner: Arc::new(inner) }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("clock", &self.clock)
            .field("has_timer", &self.timer.is_some())
            .field("second_buckets", &self.second_buckets)
            .field("observers", &self.observers.len())
            .field("max_resources", &self.max_resources)
            .finish_non_exhaustive()
    }
}

/// A call of a resource, by name, that has not entered yet.
#[derive(Clone, Debug)]
#[must_use = "nothing is entered before `enter`"]
pub struct EnterWith<'a> {
    registry: &'a Registry,
    resource: &'a str,
    permits: u32,
    priority: bool,
    inbound: bool,
    entrance: Option<&'a str>,
    origin: Option<&'a str>,
    keys: Vec<(&'a str, Key)>,
}

impl<'a> EnterWith<'a> {
    /// Asks for `n` permits instead of one. 0 is taken as 1.
    pub fn permits(mut self, n: u32) -> Self {
        self.permits = n;
        self
    }

    /// Where a window limit is reached, waits for a place in the next window instead of being blocked, for at most
    /// one interval.
    pub fn priority(mut self) -> Self {
        self.priority = true;
        self
    }

    /// Says that the call comes from outside: it counts for [`SystemRule`](crate::SystemRule)s, which may block it.
    pub fn inbound(mut self) -> Self {
        self.inbound = true;
        self
    }

    /// Says through which entrance the call came, in place of that of the [`Context`](crate::Context) around it.
    pub fn entrance(mut self, entrance: &'a str) -> Self {
        self.entrance = Some(entrance);
        self
    }

    /// Says who calls, in place of the origin of the [`Context`](crate::Context) around it.
    pub fn origin(mut self, origin: &'a str) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Gives a parameter of the call, for [`HotRule`](crate::HotRule)s that name it or its position.
    pub fn key(mut self, name: &'a str, value: impl ToKey) -> Self {
        self.keys.push((name, value.to_key()));
        self
    }

    fn with<R>(&self, ask: impl FnOnce(&Request<'_>) -> R) -> R {
        let Self { permits, priority, inbound, entrance, origin, .. } = *self;
        ask(&Request { permits: permits.max(1), priority, inbound, entrance, origin, keys: &self.keys })
    }

    /// Lets the call through, unless a rule says no. Where a rule has it wait, the thread is parked meanwhile.
    ///
    /// # Errors
    ///
    /// [`Blocked`] names the rule and, where it is known, how long to wait.
    pub fn enter(self) -> Result<Entry, Blocked> {
        let handle = Handle::Shared(self.registry.resource_of_call(self.resource));
        self.with(|request| entry::enter_by_name(handle, request))
    }

    /// As [`enter`](Self::enter), for async code: where a rule has the call wait, the future does, and dropping it gives
    /// the call's turn back.
    ///
    /// # Errors
    ///
    /// [`Blocked`] names the rule and, where it is known, how long to wait.
    pub async fn enter_async(self) -> Result<Entry, Blocked> {
        let handle = Handle::Shared(self.registry.resource_of_call(self.resource));
        let begun = self.with(|request| entry::begin_by_name(handle, request));
        Entering::new(begun).await
    }

    /// What the call would be told now. Takes nothing: no permit, no probe slot, no turn, and counts nothing.
    ///
    /// A call that would have to wait for its turn would pass. Whether one that would queue for permits or wait for a place
    /// passes in the end, nobody knows yet: it is told what it would be told without waiting. [Checks](crate::Check) of the
    /// application's own are not asked: they would take it for a call.
    ///
    /// # Errors
    ///
    /// The [`Blocked`] that the call would get.
    pub fn would_pass(self) -> Result<(), Blocked> {
        let (registry, name) = (self.registry, usable(self.resource));
        let globs = LazyCell::new(|| registry.rules().book().globs_for(name));
        let found = registry.inner.roster.look(name, || overflow_of(&globs));
        // Rules that name it have made it, and those of patterns would hold for it: asked of one that nobody else sees.
        let made = || (!globs.is_empty()).then(|| Arc::new(registry.make(name.into())));
        let resource = found.or_else(made);
        self.with(|request| match resource {
            Some(resource) => entry::peek(&Handle::Shared(registry.made_ready(resource)), request),
            None => entry::peek_new(&registry.inner.environment, name, request),
        })
    }
}

/// A check that was added to a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckId(u64);

/// Live scopes anywhere: while there are none, nobody looks for one.
static N_SCOPES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static SCOPED: RefCell<Option<Registry>> = const { RefCell::new(None) };
}

/// Whether any thread has a registry in scope.
#[inline]
pub(crate) fn is_any_in_scope() -> bool {
    N_SCOPES.load(Ordering::Relaxed) > 0
}

/// The registry in scope on this thread, if there is one.
pub(crate) fn in_scope() -> Option<Registry> {
    if !is_any_in_scope() {
        return None;
    }
    // No scope is left on a thread that is ending.
    SCOPED.try_with(|scoped| scoped.borrow().clone()).ok().flatten()
}

static GLOBAL: OnceCell<Registry> = OnceCell::new();

/// The registry `#[guarded]` uses outside any scope.
pub(crate) fn global() -> &'static Registry {
    GLOBAL.get_or_init(Registry::default)
}

/// There is a global registry already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstallError;

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there is a global registry already: install one first thing in `main`, before a guarded function is called",
        )
    }
}

impl Error for InstallError {}

/// The registry in scope, else the global one: the one that was [installed](Registry::install), or one that is made with
/// the usual settings when it is first asked for.
pub fn registry() -> Registry {
    in_scope().unwrap_or_else(|| global().clone())
}

/// Futures that carry a registry with them. A task that such a future spawns is outside, unless its own future carries it too.
pub trait InRegistry: Future + Sized {
    /// Runs this future with `registry` in scope: guarded functions that it calls use it instead of the global one.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{InRegistry, Registry, guarded};
    ///
    /// #[guarded("greet", fallback = busy)]
    /// async fn greet() -> &'static str { "hello" }
    /// fn busy(_: leap_runtime::Blocked) -> &'static str { "later" }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let registry = Registry::new();
    /// assert_eq!(greet().in_registry(&registry).await, "hello");
    /// assert_eq!(registry.stats("greet").unwrap().totals().passed(), 1);
    /// # }
    /// ```
    fn in_registry(self, registry: &Registry) -> Scoped<Self> {
        Scoped { future: self, registry: registry.clone() }
    }
}

impl<F: Future> InRegistry for F {}

pin_project! {
    /// See [`InRegistry::in_registry`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Scoped<F> {
        #[pin]
        future: F,
        registry: Registry,
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.registry.scope(|| this.future.poll(context))
    }
}
