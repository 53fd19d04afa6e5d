//! The place where `#[guarded]` stands: finds its resource once.

use std::fmt;
use std::sync::Arc;

use once_cell::sync::OnceCell;

use crate::blocked::Blocked;
use crate::entry::{self, Entry};
use crate::registry::{self, Registry};
use crate::resource::{Handle, Resource};
use crate::rule::Rule;

/// A guarded function's own static.
pub struct CallSite {
    resource: Option<&'static str>,
    function: fn() -> &'static str,
    rules: &'static [Rule],
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

    /// Lets a call through, unless a rule says no.
    ///
    /// # Errors
    ///
    /// [`Blocked`], if one does.
    #[inline]
    pub fn enter(&'static self, permits: u32) -> Result<Entry, Blocked> {
        match registry::in_scope() {
            None => {
                let resource = self.global.get_or_init(|| self.attach(registry::global()));
                entry::enter(Handle::Static(resource), permits)
            }
            Some(registry) => entry::enter(Handle::Shared(self.attach(&registry)), permits),
        }
    }

    #[cold]
    fn attach(&self, registry: &Registry) -> Arc<Resource> {
        let function = (self.function)();
        let resource = registry.resource(self.resource.unwrap_or(function));
        resource.attach(std::ptr::from_ref(self).addr(), function, self.rules);
        resource
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallSite")
            .field("resource", &self.resource)
            .field("function", &(self.function)())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}
