//! The future of a guarded body: waits until its call may start, runs the body, and ends the call.

use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::begin::Begun;
use super::{Entry, Running};
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
    /// What it says, told what the body said itself.
    fn judge(self, value: &R, said: Option<Outcome>) -> Outcome;
}

impl<R, J: FnOnce(&R) -> Outcome> Judge<R> for J {
    #[inline]
    fn judge(self, value: &R, said: Option<Outcome>) -> Outcome {
        said.unwrap_or_else(|| self(value))
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

    /// As [`new`](Self::new), for a call that was let through.
    pub(crate) fn of_entry(entry: Entry, future: F, judge: J) -> Self {
        Self::new(Begun::Passed(entry), future, judge)
    }
}

impl<F: Future, J: Judge<F::Output>> Future for Guarded<F, J> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        while let Begun::Waiting(waiting) = this.begun {
            match waiting.poll(context) {
                Poll::Ready(begun) => {
                    *this.begun = begun;
                    this.begun.note_cancelled();
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Begun::Blocked(_) = this.begun {
            let Begun::Blocked(blocked) = std::mem::replace(this.begun, Begun::Over) else {
                unreachable!("looked at just now")
            };
            let _telling = Telling::new(blocked);
            return this.future.poll(context);
        }
        let ends_by_panic = EndsByPanic(this.begun);
        let running = ends_by_panic.0.entry().map(Running::new);
        let polled = this.future.poll(context);
        drop(running);
        std::mem::forget(ends_by_panic);
        // Looked at where it is: an output may be large to move about.
        match (&polled, this.begun.entry()) {
            (Poll::Pending, Some(entry)) => {
                if !entry.marks.is_silent() {
                    entry.hear();
                }
            }
            (Poll::Ready(value), Some(entry)) => {
                if let Some(judge) = this.judge.take() {
                    entry.judge(value, judge);
                }
                *this.begun = Begun::Over;
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

    /// A future that is dropped is cancelled, whatever else goes on.
    #[inline]
    pub(super) fn note_cancelled(&mut self) {
        if let Self::Passed(entry) = self {
            entry.outcome = Some(Outcome::Cancelled);
        }
    }
}

/// Ends the call of a body that panics while it is polled, although its future may live on.
pub(super) struct EndsByPanic<'a>(pub(super) &'a mut Begun);

impl Drop for EndsByPanic<'_> {
    fn drop(&mut self) {
        if let Begun::Passed(entry) = std::mem::replace(self.0, Begun::Over) {
            entry.end(Outcome::Exception);
        }
    }
}

thread_local! {
    /// Without a destructor, so that it is there as long as the thread is: who sets it takes it out again.
    static TURNED_AWAY: Cell<Option<ManuallyDrop<Blocked>>> = const { Cell::new(None) };
}

/// The stretch during which a future is polled for the first time and hears that its body is not to run.
struct Telling(Marks);

impl Telling {
    fn new(blocked: Blocked) -> Self {
        TURNED_AWAY.set(Some(ManuallyDrop::new(blocked)));
        Self(Marks::TURNED_AWAY.swap())
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.swap();
        // Whoever was to hear it has panicked, or was no future of ours.
        TURNED_AWAY.take().map(ManuallyDrop::into_inner);
    }
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
