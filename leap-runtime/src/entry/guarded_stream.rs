//! The stream of a guarded function: its call begins when it is first polled, and ends when it does.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use pin_project_lite::pin_project;

use super::begin::Begun;
use super::guarded::Polling;
use super::{Entry, Stage};
use crate::blocked::Blocked;
use crate::event::Outcome;

pin_project! {
    /// The stream of a guarded function, and the entry that ends with it.
    ///
    /// The fields are dropped in this order: what a cancelled stream drops is still part of the call.
    #[derive(Debug)]
    #[must_use = "streams do nothing unless they are polled"]
    pub struct GuardedStream<B, S, J, A, O> {
        // Until the call has begun.
        begin: Option<B>,
        // Until the call is turned away.
        #[pin]
        stream: Option<S>,
        judge: J,
        answer: Option<A>,
        // What answers a call that was turned away.
        #[pin]
        answering: Option<O>,
        begun: Begun,
    }
}

impl<B, S, J, A, O> GuardedStream<B, S, J, A, O> {
    /// `judge` is asked about each item of a call that was let through; `answer` takes the place of one that was not.
    pub(crate) fn new(begin: B, stream: S, judge: J, answer: A) -> Self {
        Self {
            begin: Some(begin),
            stream: Some(stream),
            judge,
            answer: Some(answer),
            answering: None,
            begun: Begun::Over,
        }
    }
}

impl<B, S, J, A, O> Stream for GuardedStream<B, S, J, A, O>
where
    B: FnOnce() -> Begun,
    S: Stream,
    J: FnMut(&S::Item) -> Outcome,
    A: FnOnce(Blocked) -> O,
    O: Stream<Item = S::Item>,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if let Some(begin) = this.begin.take() {
            *this.begun = begin();
            this.begun.note_cancelled();
        }
        if let Begun::Waiting(_) = this.begun
            && this.begun.wait(context).is_pending()
        {
            return Poll::Pending;
        }
        if let Some(blocked) = this.begun.take_blocked()
            && let Some(answer) = this.answer.take()
        {
            this.stream.set(None);
            this.answering.set(Some(answer(blocked)));
        }
        if let Some(answering) = this.answering.as_mut().as_pin_mut() {
            return answering.poll_next(context);
        }
        let Some(stream) = this.stream.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let mut polling = Polling::new(this.begun);
        let polled = stream.poll_next(context);
        polling.leave();
        std::mem::forget(polling);
        match (&polled, this.begun.entry()) {
            (Poll::Pending, Some(entry)) => {
                if !entry.marks.is_silent() {
                    entry.hear();
                }
            }
            (Poll::Ready(Some(item)), Some(entry)) => entry.judge_item(item, &mut *this.judge),
            (Poll::Ready(None), Some(entry)) => {
                entry.judge_end();
                this.begun.end();
            }
            // No call, or polled after its end: the stream has said what it thinks of that.
            (_, None) => {}
        }
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match (&self.begin, &self.stream, &self.answering) {
            (None, Some(stream), None) if !matches!(self.begun, Begun::Waiting(_)) => stream.size_hint(),
            (_, _, Some(answering)) => answering.size_hint(),
            // It may yet be turned away.
            _ => (0, None),
        }
    }
}

impl Entry {
    /// Has the call of a stream end by the worst of its items, if it is cut short.
    fn judge_item<T>(&mut self, item: &T, judge: &mut impl FnMut(&T) -> Outcome) {
        if self.stage == Stage::Uncounted {
            return;
        }
        let (environment, name) = (self.resource.environment(), self.resource.name());
        match environment.contain("outcome predicate", &**name, || judge(item)) {
            None | Some(Outcome::Exception) => self.outcome = Some(Outcome::Exception),
            Some(Outcome::Ignored) if self.outcome != Some(Outcome::Exception) => {
                self.outcome = Some(Outcome::Ignored);
            }
            Some(_) => {}
        }
    }

    /// The stream has come to its end: with nothing worse, that is a success.
    fn judge_end(&mut self) {
        let judged =
            self.outcome.filter(|outcome| *outcome != Outcome::Cancelled).unwrap_or(Outcome::Success);
        self.outcome = Some(self.marks.outcome().unwrap_or(judged));
    }
}
