//! A call on its way in, and the seam for checks of the application's own.

use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::key::Key;

/// What a call brings with it, beside the resource that it enters.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// At least 1.
    pub permits: u32,
    /// Whether it would rather wait for a place in the next window than be blocked.
    pub priority: bool,
    /// Whether it comes from outside, and so counts for the protection of the system.
    pub inbound: bool,
    /// By which entrance it came in, where that is said.
    pub entrance: Option<&'a str>,
    /// Who calls, where that is said.
    pub origin: Option<&'a str>,
    /// The parameters that rules may look at, by name, in order.
    pub keys: &'a [(&'a str, Key)],
}

impl Request<'_> {
    /// A call of so many permits and nothing else.
    pub(crate) const fn of(permits: u32) -> Self {
        Self { permits, priority: false, inbound: false, entrance: None, origin: None, keys: &[] }
    }

    /// Whether it says no more than its permits.
    pub(crate) fn is_bare(&self) -> bool {
        let Self { permits: _, priority, inbound, entrance, origin, keys } = self;
        !priority && !inbound && entrance.is_none() && origin.is_none() && keys.is_empty()
    }
}

/// The same, to be kept while the call waits.
#[derive(Clone, Debug)]
pub(crate) struct OwnedRequest {
    permits: u32,
    priority: bool,
    inbound: bool,
    entrance: Option<Box<str>>,
    origin: Option<Box<str>>,
    keys: Box<[(Box<str>, Key)]>,
}

impl From<&Request<'_>> for OwnedRequest {
    fn from(request: &Request<'_>) -> Self {
        Self {
            permits: request.permits,
            priority: request.priority,
            inbound: request.inbound,
            entrance: request.entrance.map(Box::from),
            origin: request.origin.map(Box::from),
            keys: request.keys.iter().map(|(name, key)| (Box::from(*name), key.clone())).collect(),
        }
    }
}

impl OwnedRequest {
    /// What `ask` answers to it.
    pub(crate) fn with<R>(&self, ask: impl FnOnce(&Request<'_>) -> R) -> R {
        let keys: Vec<(&str, Key)> = self.keys.iter().map(|(name, key)| (&**name, key.clone())).collect();
        ask(&Request {
            permits: self.permits,
            priority: self.priority,
            inbound: self.inbound,
            entrance: self.entrance.as_deref(),
            origin: self.origin.as_deref(),
            keys: &keys,
        })
    }
}

/// A check of the application's own: asked about every call of the resources it is added to, before their rules.
///
/// Checks are added by [`Registry::add_check`](crate::Registry::add_check). One may pass a call, block it for a reason of
/// its own, or have it wait; of each call that it did not block it is told the end, exactly once, also when a
/// later rule blocked the call. It is called on the thread of the call, with no lock held, and should be quick. A
/// panic in it is contained and counted, and passes the call: code that watches a service does not take it down.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::sync::Arc;
/// use leap_runtime::{Call, Cause, Check, Registry, Verdict};
///
/// /// Blocks everything while the service is being maintained.
/// #[derive(Default)]
/// struct Maintenance(AtomicBool);
///
/// impl Check for Maintenance {
///     fn check(&self, _call: &Call<'_>) -> Verdict {
///         if self.0.load(Ordering::Relaxed) { Verdict::block("maintenance") } else { Verdict::Pass }
///     }
/// }
///
/// let registry = Registry::new();
/// let maintenance = Arc::new(Maintenance::default());
/// registry.add_check("orders.*", Arc::clone(&maintenance));
/// assert!(registry.enter("orders.create").is_ok());
///
/// maintenance.0.store(true, Ordering::Relaxed);
/// let blocked = registry.enter("orders.create").unwrap_err();
/// assert_eq!((blocked.cause(), blocked.reason()), (Cause::Custom, Some("maintenance")));
/// assert!(registry.enter("stock.read").is_ok());
/// ```
pub trait Check: Send + Sync + 'static {
    /// What becomes of a call.
    fn check(&self, call: &Call<'_>) -> Verdict;

    /// A call that this check did not block has ended, or was blocked by a later check.
    fn ended(&self, call: &Ended<'_>) {
        let _ = call;
    }
}

impl<T: Check + ?Sized> Check for std::sync::Arc<T> {
    fn check(&self, call: &Call<'_>) -> Verdict {
        (**self).check(call)
    }

    fn ended(&self, call: &Ended<'_>) {
        (**self).ended(call);
    }
}

/// What a [`Check`] says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The call goes on.
    Pass,
    /// The call goes on, and starts so much later: a sync caller is parked, an async one awaits.
    Wait(Duration),
    /// The call is blocked.
    Block {
        /// Why, in a word or two: it is what [`Blocked`](crate::Blocked) prints.
        reason: &'static str,
        /// When to come back, where that is known.
        retry_after: Option<Duration>,
    },
}

impl Verdict {
    /// Blocks for this reason, without a time to come back.
    pub const fn block(reason: &'static str) -> Self {
        Self::Block { reason, retry_after: None }
    }
}

/// A call on its way in, as a [`Check`] sees it.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    pub(crate) resource: &'a str,
    pub(crate) request: &'a Request<'a>,
    pub(crate) at: Timestamp,
}

impl<'a> Call<'a> {
    /// The resource that it enters.
    pub fn resource(&self) -> &'a str {
        self.resource
    }

    /// The permits that it asks for.
    pub fn permits(&self) -> u32 {
        self.request.permits
    }

    /// Who calls, where that is said.
    pub fn origin(&self) -> Option<&'a str> {
        self.request.origin
    }

    /// Through which entrance it came, where that is said.
    pub fn entrance(&self) -> Option<&'a str> {
        self.request.entrance
    }

    /// Whether it comes from outside.
    pub fn is_inbound(&self) -> bool {
        self.request.inbound
    }

    /// Whether it would rather wait for a place than be blocked.
    pub fn is_priority(&self) -> bool {
        self.request.priority
    }

    /// The value of a parameter.
    pub fn key(&self, name: &str) -> Option<&'a Key> {
        self.request.keys.iter().find(|(known, _)| *known == name).map(|(_, key)| key)
    }

    /// When it arrived, by the registry's clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("resource", &self.resource)
            .field("request", &self.request)
            .field("at", &self.at)
            .finish()
    }
}

/// How a call ended that a [`Check`] did not block.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    pub(crate) resource: &'a str,
    pub(crate) permits: u64,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) rt: Duration,
}

impl<'a> Ended<'a> {
    /// The resource that was entered.
    pub fn resource(&self) -> &'a str {
        self.resource
    }

    /// The permits of the call, charged ones included.
    pub fn permits(&self) -> u64 {
        self.permits
    }

    /// How it ended; none if a later check blocked it, or it waits anew for its place.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// How long it ran.
    pub fn rt(&self) -> Duration {
        self.rt
    }
}
