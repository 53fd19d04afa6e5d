//! What surrounds a call: by which entrance it came in and from whom, and who counts it beside its resource.

use crate::blocked::Cause;
use crate::check::call::Request;
use crate::clock::Timestamp;
use crate::context::{Context, usable_origin};
use crate::event::Outcome;
use crate::resource::Resource;
use crate::share::Witnesses;

/// The surroundings of a call that has any.
#[derive(Debug)]
pub(super) struct Scene {
    /// That of the call, then that of its body; while that runs, the one around it.
    context: Option<Context>,
    has_context: bool,
    /// Whether the body runs on this thread, in its context.
    is_inside: bool,
    witnesses: Witnesses,
}

impl Scene {
    /// None where nothing is known of the call but what it enters. `request` is [complete](complete).
    pub(super) fn of(
        resource: &Resource,
        request: &Request<'_>,
        context: Option<Context>,
        now: Timestamp,
    ) -> Option<Self> {
        if context.is_none() && request.origin.is_none() {
            return None;
        }
        let witnesses = resource.witnesses(context.as_ref(), request.origin, now);
        Some(Self { has_context: context.is_some(), is_inside: false, context, witnesses })
    }

    /// That of a call which nobody counts: its body runs in its context all the same, for what it calls may be guarded.
    pub(super) fn uncounted(context: Option<Context>) -> Option<Self> {
        let witnesses = Witnesses::default();
        context.map(|context| Self { context: Some(context), has_context: true, is_inside: false, witnesses })
    }

    /// The call passed, and its body may run, perhaps after a wait: what it calls is called from here.
    pub(super) fn pass(&mut self, n: u32, waits: bool, now: Timestamp) {
        self.witnesses.pass(n, waits, now);
        if let (Some(context), Some(position)) = (&self.context, &self.witnesses.position) {
            self.context = Some(context.at(position.clone()));
        }
    }

    /// The wait is over.
    pub(super) fn start(&self, n: u32, now: Timestamp) {
        self.witnesses.start(n, now);
    }

    pub(super) fn stop_waiting(&self, n: u32) {
        self.witnesses.stop_waiting(n);
    }

    pub(super) fn block(&self, cause: Cause, n: u32, now: Timestamp) {
        self.witnesses.block(cause, n, now);
    }

    pub(super) fn charge(&self, n: u64, now: Timestamp) {
        self.witnesses.charge(n, now);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn end(&mut self, outcome: Outcome, permits: u64, rt_ns: u64, now: Timestamp) {
        self.leave();
        self.witnesses.complete(outcome, permits, rt_ns, now);
    }

    /// The body is about to run on this thread, in its context if it has one. It [leaves](Self::leave) that in the same
    /// thread.
    #[cold]
    #[inline(never)]
    pub(super) fn enter(&mut self) {
        if self.has_context && !self.is_inside {
            self.is_inside = true;
            self.context = Context::swap(self.context.take());
        }
    }

    /// The body no longer runs on this thread.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(&mut self) {
        if self.is_inside {
            self.is_inside = false;
            self.context = Context::swap(self.context.take());
        }
    }
}

/// The request with what its context says, and at least one permit.
pub(super) fn complete<'a>(request: &Request<'a>, context: Option<&'a Context>) -> Request<'a> {
    Request {
        permits: request.permits.max(1),
        origin: request.origin.and_then(usable_origin).or(context.and_then(Context::origin)),
        entrance: context.map(Context::entrance),
        ..*request
    }
}
