//! The future that the body of a guarded function has made: its call begins when it is first polled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::begin::Begun;
use super::guarded::{Guarded, Judge};
use crate::blocked::Blocked;

pin_project! {
    /// The future of a guarded function, made before its call begins.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct GuardedMade<B, F, J, A, O> {
        // Until the call has begun.
        begin: Option<B>,
        // Until the call is turned away: what the body has made must not live while another answers.
        #[pin]
        guarded: Option<Guarded<F, J>>,
        answer: Option<A>,
        // What answers a call that was turned away.
        #[pin]
        answering: Option<O>,
    }
}

impl<B, F, J, A, O> GuardedMade<B, F, J, A, O> {
    /// `judge` is asked about a call that was let through; `answer` takes the place of one that was not.
    pub(crate) fn new(begin: B, future: F, judge: J, answer: A) -> Self {
        let guarded = Some(Guarded::new(Begun::Over, future, judge));
        Self { begin: Some(begin), guarded, answer: Some(answer), answering: None }
    }
}

impl<B, F, J, A, O> Future for GuardedMade<B, F, J, A, O>
where
    B: FnOnce() -> Begun,
    F: Future,
    J: Judge<F::Output>,
    A: FnOnce(Blocked) -> O,
    O: Future<Output = F::Output>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        if let Some(mut guarded) = this.guarded.as_mut().as_pin_mut() {
            if let Some(begin) = this.begin.take() {
                guarded.as_mut().begin(begin());
            }
            match ready!(guarded.as_mut().blocked(context)) {
                None => return guarded.poll(context),
                Some(blocked) => {
                    this.guarded.set(None);
                    this.answering.set(this.answer.take().map(|answer| answer(blocked)));
                }
            }
        }
        this.answering.as_pin_mut().expect("a call that is turned away is answered").poll(context)
    }
}
