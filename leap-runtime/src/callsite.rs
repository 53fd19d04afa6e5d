//! The place where `#[guarded]` stands: finds its resource once.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use once_cell::sync::OnceCell;

use crate::blocked::Blocked;
use crate::check::call::Request;
use crate::entry::{self, Begun, Entry};
use crate::registry::{self, Registry};
use crate::resource::{Handle, Resource};
use crate::rule::Rule;

/// A guarded function's own static.
pub struct CallSite {
    resource: Option<&'static str>,
    function: fn() -> &'static str,
    pub(crate) rules: &'static [Rule],
    /// The resource in the global registry. After the first call no map is on the path.
    global: OnceCell<Arc<Resource>>,
}

impl CallSite {
    /// The site of `function`, which is called `resource`, or by its path where that is not given.
    pub const fn new(
        resource: Option<&'static str>,
        function: fn() -> &'static str,
        rules: &'static [Rule],
    ) -> Self {
        Self { resource, function, rules, global: OnceCell::new() }
    }

    /// Lets a call through, unless a rule says no; parks the thread where it has to wait.
    ///
    /// # Errors
    ///
    /// [`Blocked`], if one does.
    #[inline]
    pub fn enter(&'static self, permits: u32) -> Result<Entry, Blocked> {
        entry::enter(self.handle(), permits)
    }

    /// As [`enter`](Self::enter), for a call that has more to say.
    ///
    /// # Errors
    ///
    /// [`Blocked`], if one does.
    pub fn enter_with(&'static self, request: &Request<'_>) -> Result<Entry, Blocked> {
        entry::enter_with(&self.handle(), request)
    }

    /// As [`enter`](Self::enter), for a caller that can await.
    #[inline]
    pub fn begin(&'static self, permits: u32) -> Begun {
        entry::begin(self.handle(), permits)
    }

    /// As [`begin`](Self::begin), for a call that has more to say.
    pub fn begin_with(&'static self, request: &Request<'_>) -> Begun {
        entry::begin_with(&self.handle(), request)
    }

    /// Runs an expression that says more about a call. If it panics, that is contained and counted, and nothing is said.
    pub(crate) fn contain<T>(
        &'static self,
        place: &'static str,
        expression: impl FnOnce() -> T,
    ) -> Option<T> {
        // Where the call goes is asked only if there is something to tell: each expression has a copy of this.
        catch_unwind(AssertUnwindSafe(expression)).map_err(|payload| self.take_panic(place, payload)).ok()
    }

    #[cold]
    #[inline(never)]
    fn take_panic(&'static self, place: &'static str, payload: Box<dyn Any + Send>) {
        let handle = self.handle();
        handle.environment().take_panic(place, Some(handle.name()), payload);
    }

    /// The name that calls enter, if it can be one.
    pub(crate) fn resource(&self) -> &'static str {
        self.resource.unwrap_or_else(self.function)
    }

    /// The path of the function.
    pub(crate) fn function(&self) -> &'static str {
        (self.function)()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call of its own is a tenth of what a call site costs")]
    fn handle(&'static self) -> Handle {
        match self.global.get() {
            Some(resource) if !registry::is_any_in_scope() => Handle::Static(resource),
            _ => self.find(),
        }
    }

    /// Out of line: each guarded function has a copy of what is not.
    #[cold]
    #[inline(never)]
    fn find(&'static self) -> Handle {
        match registry::in_scope() {
            None => Handle::Static(self.global.get_or_init(|| self.attach(registry::global()))),
            Some(registry) => Handle::Shared(self.attach(&registry)),
        }
    }

    #[cold]
    fn attach(&self, registry: &Registry) -> Arc<Resource> {
        let function = self.function();
        let resource = registry.resource(self.resource());
        let site = std::ptr::from_ref(self).addr();
        if !resource.is_attached(site) {
            let (watches, to_wake) = registry.watches(self.rules);
            to_wake.wake();
            resource.attach(site, function, self.rules, watches);
        }
        resource
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallSite")
            .field("resource", &self.resource)
            .field("function", &self.function())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
