//! The future of a guarded body: waits until its call may start, runs the body, and ends the call.

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{self, Context, Poll};

use pin_project_lite::pin_project;

use super::Entry;
use super::begin::Begun;
use crate::blocked::Blocked;
use crate::current::Marks;
use crate::event::Outcome;

pin_project! {
    /// The future of a guarded body, and the entry that ends with it.
    ///
    /// The fields are dropped in this order: what a cancelled body drops is still part of the call.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Guarded<F, J> {
        #[pin]
        future: F,
        judge: Option<J>,
        begun: Begun,
    }
}

/// Says how a call ended whose body returned `R`.
pub trait Judge<R> {
    /// Has the call of `entry` end as it says, or as the body said.
    fn settle(self, entry: &mut Entry, value: &R);
}

impl<R, J: FnOnce(&R) -> Outcome> Judge<R> for J {
    #[inline]
    fn settle(self, entry: &mut Entry, value: &R) {
        if entry.is_counted() {
            entry.settle(|said| said.unwrap_or_else(|| self(value)));
        }
    }
}

/// A judge that does not panic.
#[derive(Debug)]
pub struct Calm<J>(pub J);

impl<R, J: FnOnce(&R) -> Outcome> Judge<R> for Calm<J> {
    #[inline]
    fn settle(self, entry: &mut Entry, value: &R) {
        let Self(judge) = self;
        let judged = judge(value);
        entry.outcome = Some(entry.marks.outcome().unwrap_or(judged));
    }
}

impl<F, J> Guarded<F, J> {
    /// `future` asks [`turned_away`] first of all, and answers a call that was blocked; `judge` is asked only about
    /// calls that were let through.
    #[inline]
    pub(crate) fn new(mut begun: Begun, future: F, judge: J) -> Self {
        begun.note_cancelled();
        Self { future, judge: Some(judge), begun }
    }

    /// The call begins.
    pub(super) fn begin(self: Pin<&mut Self>, begun: Begun) {
        let this = self.project();
        *this.begun = begun;
        this.begun.note_cancelled();
    }

    /// The block, if the call is turned away, for somebody else to answer; waits until that is known.
    pub(super) fn blocked(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Blocked>> {
        let this = self.project();
        if let Begun::Waiting(_) = this.begun {
            task::ready!(this.begun.wait(context));
        }
        Poll::Ready(this.begun.take_blocked())
    }

    /// As [`new`](Self::new), for a call that was let through.
    pub(crate) fn of_entry(entry: Entry, future: F, judge: J) -> Self {
        Self::new(Begun::Passed(entry), future, judge)
    }
}

impl<F: Future, J: Judge<F::Output>> Future for Guarded<F, J> {
    type Output = F::Output;

    /// What is the same for every future is out of line: each guarded function has a copy of the rest. It polls the body in
    /// one place, so that the two can become one function.
    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if let Begun::Waiting(_) = this.begun
            && this.begun.wait(context).is_pending()
        {
            return Poll::Pending;
        }
        let mut polling = Polling::new(this.begun);
        let polled = this.future.poll(context);
        polling.leave();
        std::mem::forget(polling);
        // Looked at where it is: an output may be large to move about.
        match (&polled, this.begun.entry()) {
            (Poll::Pending, Some(entry)) => {
                if !entry.marks.is_silent() {
                    entry.hear();
                }
            }
            (Poll::Ready(value), Some(entry)) => {
                if let Some(judge) = this.judge.take() {
                    judge.settle(entry, value);
                }
                this.begun.end();
            }
            // No call, or polled after it was ready: the body has said what it thinks of that.
            (_, None) => {}
        }
        polled
    }
}

impl Begun {
    #[inline]
    pub(super) fn entry(&mut self) -> Option<&mut Entry> {
        match self {
            Self::Passed(entry) => Some(entry),
            Self::Waiting(_) | Self::Blocked(_) | Self::Over => None,
        }
    }

    /// Waits until it is known what becomes of the call.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Self::Waiting(waiting) = self {
            *self = task::ready!(waiting.poll(context));
            self.note_cancelled();
        }
        Poll::Ready(())
    }

    /// The block, if there is one, for somebody to answer.
    pub(super) fn take_blocked(&mut self) -> Option<Blocked> {
        if !matches!(self, Self::Blocked(_)) {
            return None;
        }
        match std::mem::replace(self, Self::Over) {
            Self::Blocked(blocked) => Some(blocked),
            _ => unreachable!("looked at just now"),
        }
    }

    /// Has the future hear of the block, if there is one. The marks meanwhile are those around it, and whether it hears.
    #[cold]
    #[inline(never)]
    fn tell(&mut self) -> (Marks, bool) {
        let Some(blocked) = self.take_blocked() else { return (Marks::here(), false) };
        TURNED_AWAY.set(Some(ManuallyDrop::new(blocked)));
        (Marks::here().turned_away(), true)
    }

    /// The call, if there was one, is over.
    #[inline(never)]
    pub(super) fn end(&mut self) {
        *self = Self::Over;
    }

    /// A future that is dropped is cancelled, whatever else goes on.
    #[inline]
    pub(super) fn note_cancelled(&mut self) {
        if let Self::Passed(entry) = self {
            entry.outcome = Some(Outcome::Cancelled);
        }
    }
}

/// The stretch during which a future is polled, on this thread: its body may mark its call meanwhile, or hears that it is not
/// to run.
pub(super) struct Polling<'a> {
    begun: &'a mut Begun,
    outer: Marks,
    is_told: bool,
}

impl<'a> Polling<'a> {
    #[inline]
    pub(super) fn new(begun: &'a mut Begun) -> Self {
        let (marks, is_told) = match begun {
            Begun::Passed(entry) => {
                if let Some(scene) = &mut *entry.scene {
                    scene.enter();
                }
                (entry.marks, false)
            }
            _ => begun.tell(),
        };
        Self { outer: marks.swap(), begun, is_told }
    }

    /// The future has been polled.
    #[inline]
    pub(super) fn leave(&mut self) {
        match self.begun {
            Begun::Passed(entry) => {
                entry.marks = self.outer.swap();
                if let Some(scene) = &mut *entry.scene {
                    scene.leave();
                }
            }
            _ if self.is_told => hush(),
            // There is no call: what was marked is the one around it.
            _ => {}
        }
    }
}

impl Drop for Polling<'_> {
    /// The body has panicked: that ends its call, although its future may live on.
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        self.leave();
        if let Begun::Passed(entry) = std::mem::replace(self.begun, Begun::Over) {
            entry.end(Outcome::Exception);
        }
    }
}

#[cold]
#[inline(never)]
fn hush() {
    // Whoever was to hear it has panicked, or was no future of ours. What was marked is the call around it.
    Marks::hear_turned_away();
    TURNED_AWAY.take().map(ManuallyDrop::into_inner);
}

thread_local! {
    /// Without a destructor, so that it is there as long as the thread is: who sets it takes it out again.
    static TURNED_AWAY: Cell<Option<ManuallyDrop<Blocked>>> = const { Cell::new(None) };
}

/// Whether the future that is being polled for the first time is to answer that its call was blocked.
#[inline]
pub fn is_turned_away() -> bool {
    Marks::is_turned_away()
}

/// The block that the future is to answer with.
///
/// # Panics
///
/// If the future was not [turned away](is_turned_away), or has taken its block already.
pub fn turned_away() -> Blocked {
    Marks::hear_turned_away();
    let blocked = TURNED_AWAY.take().expect("a future that is turned away is told by what");
    ManuallyDrop::into_inner(blocked)
}
