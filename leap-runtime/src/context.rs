//! Where calls come from: the entrance that they came in by and their origin, for all that runs in a scope or a future.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Poll};

use pin_project_lite::pin_project;

use crate::rule::{OVERFLOW, is_name};
use crate::tree::{Position, Tree};

/// Where calls come from: by which entrance they came in, and from whom.
///
/// Rules may hold for one entrance or one origin only, statistics are kept for each, and calls made in a context are
/// noted in the call tree. Sync code runs in a context with [`scope`](Self::scope), futures with
/// [`in_context`](InContext::in_context). Threads and tasks that are spawned leave it, unless their future carries it.
///
/// A context is cheap to clone.
///
/// # Names
///
/// An entrance whose name is empty or over 1 KiB long is called `(overflow)` instead, as a resource would be. So is an
/// origin whose name is over 1 KiB long; an empty one is no origin.
///
/// # Examples
///
/// ```
/// use leap_runtime::Context;
///
/// let context = Context::new("front").with_origin("vip");
/// let origin = context.scope(|| Context::current().and_then(|context| context.origin().map(str::to_owned)));
/// assert_eq!(origin.as_deref(), Some("vip"));
/// assert!(Context::current().is_none());
/// ```
#[derive(Clone)]
#[must_use = "a context holds for what runs in its scope"]
pub struct Context {
    names: Arc<Names>,
    /// Where in a call tree the body stands that runs in it. None outside any body: calls begin at the entrance.
    position: Option<Position>,
}

#[derive(Clone)]
struct Names {
    entrance: Cow<'static, str>,
    origin: Option<Cow<'static, str>>,
}

fn usable(name: Cow<'static, str>) -> Cow<'static, str> {
    if is_name(&name) { name } else { Cow::Borrowed(OVERFLOW) }
}

/// The origin that a call of this name has: none if it is empty, `(overflow)` if it is too long.
pub(crate) fn usable_origin(name: &str) -> Option<&str> {
    match name {
        "" => None,
        name if is_name(name) => Some(name),
        _ => Some(OVERFLOW),
    }
}

impl Context {
    /// A context of calls that come in by `entrance`, from nobody in particular.
    pub fn new(entrance: impl Into<Cow<'static, str>>) -> Self {
        let names = Names { entrance: usable(entrance.into()), origin: None };
        Self { names: Arc::new(names), position: None }
    }

    /// The same context for calls that come from `origin`.
    pub fn with_origin(self, origin: impl Into<Cow<'static, str>>) -> Self {
        let origin = origin.into();
        let origin = (!origin.is_empty()).then(|| usable(origin));
        let names = Names { entrance: self.names.entrance.clone(), origin };
        Self { names: Arc::new(names), position: self.position }
    }

    /// The entrance that calls came in by.
    pub fn entrance(&self) -> &str {
        &self.names.entrance
    }

    /// Where calls come from, if it is known.
    pub fn origin(&self) -> Option<&str> {
        self.names.origin.as_deref()
    }

    /// The context of the code that is running.
    ///
    /// Given to a future that is spawned, it has the calls of that future counted as made here.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Context, InContext};
    ///
    /// async fn entrance() -> Option<String> {
    ///     Context::current().map(|context| context.entrance().to_owned())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let task = Context::new("front").scope(|| {
    ///     let here = Context::current().expect("set by the scope");
    ///     tokio::spawn(entrance().in_context(&here))
    /// });
    /// assert_eq!(task.await.unwrap().as_deref(), Some("front"));
    /// assert_eq!(tokio::spawn(entrance()).await.unwrap(), None);
    /// # }
    /// ```
    #[inline]
    pub fn current() -> Option<Self> {
        // Relaxed: a thread sees its own additions, and asks about no other's.
        if N_INSIDE.load(Ordering::Relaxed) == 0 {
            return None;
        }
        // A thread that is ending is in no context any more.
        CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
    }

    /// Whether the code that is running is in a context.
    #[inline]
    pub(crate) fn is_any() -> bool {
        // Relaxed: as in `current`.
        N_INSIDE.load(Ordering::Relaxed) > 0
            && CURRENT.try_with(|current| current.borrow().is_some()).unwrap_or(false)
    }

    /// Runs `body` in this context; then, also if it panics, the one before holds again.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::Context;
    ///
    /// let entrance = || Context::current().map(|context| context.entrance().to_owned());
    /// Context::new("front").scope(|| {
    ///     assert_eq!(Context::new("back").scope(entrance).as_deref(), Some("back"));
    ///     assert_eq!(entrance().as_deref(), Some("front"));
    /// });
    /// ```
    pub fn scope<T>(&self, body: impl FnOnce() -> T) -> T {
        /// Leaves the context also when the body panics.
        struct Scope(Option<Context>);
        impl Drop for Scope {
            fn drop(&mut self) {
                drop(Context::swap(self.0.take()));
            }
        }
        let _scope = Scope(Self::swap(Some(self.clone())));
        body()
    }

    /// Makes this the context of this thread, and returns the one that was.
    ///
    /// On a thread that is ending there is none to change: what is given comes back, so that swapping it again later
    /// is right in any case.
    pub(crate) fn swap(context: Option<Self>) -> Option<Self> {
        let is_inside = context.is_some();
        let mut context = Some(context);
        let swapped = CURRENT.try_with(|current| {
            let next = context.take().expect("taken only here");
            current.replace(next)
        });
        let Ok(outer) = swapped else { return context.flatten() };
        match (outer.is_some(), is_inside) {
            (false, true) => drop(N_INSIDE.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(N_INSIDE.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        outer
    }

    /// The context of a call that says of itself by which entrance and from whom it comes, as far as it does.
    ///
    /// An entrance that is not the present one begins a context of its own, with the origin that was unless the call
    /// names one. An origin alone is the call's, and not that of the calls in its body.
    pub(crate) fn of_call(entrance: Option<&str>, origin: Option<&str>) -> Option<Self> {
        let current = Self::current();
        let Some(entrance) = entrance else { return current };
        let is_same = |current: &&Self| current.entrance() == entrance;
        let position = current.as_ref().filter(is_same).and_then(|current| current.position.clone());
        let present = current.as_ref().and_then(Self::origin);
        let origin = origin.or(present);
        match &current {
            Some(context) if is_same(&context) && origin == present => current,
            _ => {
                let new = Self { position, ..Self::new(entrance.to_owned()) };
                Some(match origin {
                    Some(origin) => new.with_origin(origin.to_owned()),
                    None => new,
                })
            }
        }
    }

    /// Where calls made in this context begin: in the body that runs in it, or else at its entrance.
    ///
    /// A body of another registry's is in another tree, and counts for nothing in this one.
    pub(crate) fn position(&self, tree: &Tree) -> Position {
        match &self.position {
            Some(position) if position.is_in(tree) => position.clone(),
            _ => tree.entrance(self.entrance()),
        }
    }

    /// The context of a body that runs at `position`.
    pub(crate) fn at(&self, position: Position) -> Self {
        Self { names: Arc::clone(&self.names), position: Some(position) }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("entrance", &self.names.entrance)
            .field("origin", &self.names.origin)
            .finish_non_exhaustive()
    }
}

/// Threads that are in a context: while there are none, nobody looks for one.
static N_INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Context>> = const { RefCell::new(None) };
}

/// Futures that carry a context with them.
pub trait InContext: Future + Sized {
    /// Runs this future in `context`, wherever it is polled.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{Context, InContext};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let entrance = async { Context::current().map(|context| context.entrance().to_owned()) };
    /// let front = entrance.in_context(&Context::new("front"));
    /// assert_eq!(tokio::spawn(front).await.unwrap().as_deref(), Some("front"));
    /// # }
    /// ```
    fn in_context(self, context: &Context) -> Contextual<Self> {
        Contextual { future: self, context: context.clone() }
    }
}

impl<F: Future> InContext for F {}

pin_project! {
    /// See [`InContext::in_context`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Contextual<F> {
        #[pin]
        future: F,
        context: Context,
    }
}

impl<F: Future> Future for Contextual<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.context.scope(|| this.future.poll(context))
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
    use std::task::Waker;

    use super::*;

    /// Entrance and origin of the code that is running.
    fn here() -> Option<String> {
        let context = Context::current()?;
        Some(format!("{}/{}", context.entrance(), context.origin().unwrap_or("-")))
    }

    #[test]
    fn a_nested_context_hides_the_outer_one_and_brings_it_back_also_after_a_panic() {
        let front = Context::new("front").with_origin("vip");
        front.scope(|| {
            let panicked = catch_unwind(|| {
                Context::new("back").scope(|| {
                    assert_eq!(here().as_deref(), Some("back/-"));
                    panic!("inside");
                })
            });
            assert!(panicked.is_err());
            assert_eq!(here().as_deref(), Some("front/vip"));
            std::thread::scope(|scope| assert_eq!(scope.spawn(here).join().unwrap(), None));
        });
        assert_eq!(here(), None);
    }

    #[test]
    fn a_future_is_in_its_context_at_every_poll_and_nobody_else_between_them() {
        let body = async {
            let mut seen = vec![here()];
            tokio::task::yield_now().await;
            seen.push(here());
            seen
        };
        let mut body = Box::pin(body.in_context(&Context::new("front")));
        let mut context = task::Context::from_waker(Waker::noop());
        let mut polls = 0;
        let seen = loop {
            polls += 1;
            if let Poll::Ready(seen) = body.as_mut().poll(&mut context) {
                break seen;
            }
            assert_eq!(here(), None);
        };
        assert_eq!((polls, seen), (2, vec![Some("front/-".to_owned()), Some("front/-".to_owned())]));
    }

    #[test]
    fn names_that_cannot_be_are_replaced_and_an_empty_origin_is_none() {
        let long = "x".repeat(1_025);
        assert_eq!(Context::new("x".repeat(1_024)).entrance().len(), 1_024);
        assert_eq!(Context::new(long.clone()).entrance(), "(overflow)");
        assert_eq!(Context::new("").entrance(), "(overflow)");
        assert_eq!(Context::new("front").with_origin(long.clone()).origin(), Some("(overflow)"));
        assert_eq!(Context::new("front").with_origin("vip").with_origin("").origin(), None);
        assert_eq!((usable_origin(""), usable_origin("a")), (None, Some("a")));
        assert_eq!(usable_origin(&long), Some("(overflow)"));
    }

    #[test]
    fn a_call_that_names_an_entrance_is_in_a_context_of_its_own() {
        let of_call =
            |entrance, origin| Context::of_call(entrance, origin).and_then(|context| context.scope(here));
        assert_eq!(of_call(None, None), None);
        assert_eq!(of_call(None, Some("vip")), None);
        assert_eq!(of_call(Some("back"), Some("vip")).as_deref(), Some("back/vip"));
        Context::new("front").with_origin("vip").scope(|| {
            assert_eq!(of_call(None, None).as_deref(), Some("front/vip"));
            assert_eq!(of_call(None, Some("x")).as_deref(), Some("front/vip"));
            assert_eq!(of_call(Some("front"), Some("x")).as_deref(), Some("front/x"));
            assert_eq!(of_call(Some("back"), None).as_deref(), Some("back/vip"));
        });
    }

    #[test]
    fn a_call_inside_a_body_is_a_child_of_it_in_its_own_tree_only() {
        let (tree, other) = (Tree::default(), Tree::default());
        let front = Context::new("front");
        let create = front.position(&tree).child(&"orders.create".into());
        let body = front.at(create);
        body.scope(|| {
            let here = Context::current().unwrap();
            here.position(&tree).child(&"stock.read".into()).pass(1);
            here.position(&other).child(&"stock.read".into()).pass(1);
            // Another entrance, and a way back to the one that was.
            let back = Context::of_call(Some("back"), None).unwrap();
            back.position(&tree).child(&"stock.read".into()).pass(1);
        });
        let paths = |tree: &Tree| {
            tree.read().iter().map(|(depth, node)| format!("{depth} {}", node.name())).collect::<Vec<_>>()
        };
        assert_eq!(paths(&tree), ["0 back", "1 stock.read", "0 front", "1 orders.create", "2 stock.read"]);
        assert_eq!(paths(&other), ["0 front", "1 stock.read"]);
    }

    #[test]
    fn a_thread_that_is_ending_is_in_no_context_and_may_still_run_in_scopes() {
        struct AtTheEnd;
        impl Drop for AtTheEnd {
            fn drop(&mut self) {
                assert_eq!(Context::new("late").scope(|| 7), 7);
                let swapped = Context::swap(Some(Context::new("late")));
                drop(Context::swap(swapped));
            }
        }
        thread_local! {
            static LATE: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
        }
        std::thread::spawn(|| {
            LATE.with(|late| *late.borrow_mut() = Some(AtTheEnd));
            Context::new("front").scope(|| {});
        })
        .join()
        .unwrap();
    }

    #[test]
    fn contexts_may_be_kept_over_a_caught_panic_and_sent_anywhere() {
        fn holds<T: Send + Sync + UnwindSafe + RefUnwindSafe + 'static>() {}
        holds::<Context>();
        let context = Context::new("front");
        assert!(catch_unwind(AssertUnwindSafe(|| context.scope(|| panic!("inside")))).is_err());
        assert_eq!(context.scope(here).as_deref(), Some("front/-"));
    }
}
