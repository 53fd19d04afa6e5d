//! Permits, and those who wait for them in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use crate::clock::{Clock, Timestamp, unparker, wake_all};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Permits in one word, with a queue beside it.
///
/// The word tells whoever takes permits that others wait, so that nobody overtakes them, and whoever gives some back
/// that it has to hand them over. While nobody waits, the queue is not touched.
///
/// - `queued` is the number of waiters in the queue. Both change under the lock only.
/// - While it is not 0, `in_flight` grows under the lock only, by what is handed over to the head of the queue.
/// - Whenever the lock is let go, the head of the queue does not fit, or whoever made room for it since is about to take
///   the lock: nobody waits for permits that are free.
#[derive(Debug)]
pub(super) struct Permits {
    word: AtomicU64,
    queue: Mutex<Queue>,
}

/// What [`Permits`] are at one moment.
///
/// ```text
///  63          32 31           0
/// |    queued    |  in flight   |
/// ```
///
/// While anybody is queued it is, as a number, above every limit: one comparison tells that there is room and that
/// nobody waits for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word(u64);

const ONE_QUEUED: u64 = 1 << 32;

impl Word {
    pub(super) fn queued(self) -> u32 {
        (self.0 >> 32).try_into().expect("32 bits are left")
    }

    pub(super) fn in_flight(self) -> u32 {
        (self.0 % ONE_QUEUED).try_into().expect("32 bits are left")
    }

    /// Whether `n` permits are free under this limit, and nobody waits for them.
    #[inline]
    pub(super) fn fits(self, n: u32, limit: u32) -> bool {
        self.with_taken(n, limit).is_some()
    }

    #[inline]
    fn with_taken(self, n: u32, limit: u32) -> Option<Self> {
        // The sum cannot overflow: so many waiters there are not.
        let taken = self.0 + u64::from(n);
        (taken <= u64::from(limit)).then_some(Self(taken))
    }

    /// The word after a waiter was granted `n` permits, if they fit.
    fn with_granted(self, n: u32, limit: u32) -> Option<Self> {
        let fits = self.in_flight().checked_add(n).is_some_and(|taken| taken <= limit);
        fits.then(|| Self(self.0 - ONE_QUEUED + u64::from(n)))
    }
}

#[derive(Debug)]
struct Queue {
    /// What permits are granted up to. Whoever gives some back may go by an older plan with another limit.
    limit: u32,
    waiters: VecDeque<Arc<Waiter>>,
}

/// A call that waits.
#[derive(Debug)]
struct Waiter {
    n: u32,
    /// Locked for a moment only; with the queue's lock, after it.
    place: Mutex<Place>,
}

/// Where a waiter stands.
#[derive(Debug)]
enum Place {
    /// In the queue, with whom to wake when it is granted its permits.
    Waiting(Option<Waker>),
    /// Out of the queue, with permits in flight that are its own.
    Granted,
    /// Out of the queue, with nothing: its permits were claimed, or it has given up.
    Left,
}

impl Waiter {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, place: Place) -> Place {
        std::mem::replace(&mut *self.place(), place)
    }
}

impl Permits {
    pub(super) fn new(limit: u32) -> Self {
        Self { word: AtomicU64::new(0), queue: Mutex::new(Queue { limit, waiters: VecDeque::new() }) }
    }

    pub(super) fn now(&self) -> Word {
        Word(self.word.load(Ordering::Relaxed))
    }

    /// Takes `n`, or tells why not.
    #[inline]
    pub(super) fn take(&self, n: u32, limit: u32) -> Result<(), Word> {
        // Acquire: what the calls that gave these permits back counted before is seen by the one that takes them, so
        // the peak in flight cannot come out above the limit.
        let taken = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
            Word(word).with_taken(n, limit).map(|taken| taken.0)
        });
        taken.map(drop).map_err(Word)
    }

    #[inline]
    pub(super) fn give_back(&self, n: u32) {
        // Release: see `take`; what hands permits over keeps up the release sequence, being a read-modify-write.
        // Who queues later adds itself to the word and finds these permits in it; who is in the word is seen here. So
        // one of the two hands them over.
        let before = self.word.fetch_sub(n.into(), Ordering::Release);
        if before >= ONE_QUEUED {
            self.serve_queue();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_queue(&self) {
        self.change(|_| {}).wake();
    }

    pub(super) fn set_limit(&self, limit: u32) -> ToWake {
        self.change(|queue| queue.limit = limit)
    }

    pub(super) fn queue(self: &Arc<Self>, n: u32, deadline: Timestamp) -> Ticket {
        let waiter = Arc::new(Waiter { n, place: Mutex::new(Place::Waiting(None)) });
        self.change(|queue| {
            queue.waiters.push_back(Arc::clone(&waiter));
            // Relaxed: the word's own order is what counts, see `give_back`; the queue is published by its lock.
            self.word.fetch_add(ONE_QUEUED, Ordering::Relaxed);
        })
        .wake();
        Ticket { permits: Arc::clone(self), waiter, deadline }
    }

    /// Changes the queue, then hands over what fits.
    #[cold]
    fn change(&self, change: impl FnOnce(&mut Queue)) -> ToWake {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut queue);
        self.hand_over(&mut queue)
    }

    /// Grants the heads of the queue their permits, as long as they fit.
    ///
    /// Who asks for more than a lowered limit allows at all keeps its place, but holds up nobody.
    fn hand_over(&self, queue: &mut Queue) -> ToWake {
        let mut woken = vec![];
        let mut i = 0;
        while let Some(waiter) = queue.waiters.get(i) {
            if waiter.n > queue.limit {
                i += 1;
                continue;
            }
            // Acquire: see `take`. The waiter learns of it under the lock of its place.
            let granted = self.word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |word| {
                Word(word).with_granted(waiter.n, queue.limit).map(|granted| granted.0)
            });
            if granted.is_err() {
                break;
            }
            if let Place::Waiting(Some(waker)) = waiter.put(Place::Granted) {
                woken.push(waker);
            }
            queue.waiters.remove(i);
        }
        ToWake(woken)
    }
}

/// Those who were granted their permits and do not know it yet.
#[derive(Debug, Default)]
#[must_use = "whoever was granted its permits has to be woken"]
pub(crate) struct ToWake(Vec<Waker>);

impl ToWake {
    /// Those and these.
    pub(crate) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// To be called with no lock held: what is woken is not ours.
    pub(crate) fn wake(self) {
        wake_all(self.0);
    }
}

/// A place in the queue, and then the permits that were granted there. Dropping it gives up whichever it is.
#[derive(Debug)]
#[must_use = "dropping a ticket leaves the queue"]
pub(crate) struct Ticket {
    permits: Arc<Permits>,
    waiter: Arc<Waiter>,
    deadline: Timestamp,
}

impl Ticket {
    /// The moment at which the call is to wait no longer.
    pub(crate) fn deadline(&self) -> Timestamp {
        self.deadline
    }

    /// The permits that it waits for, or holds.
    pub(crate) fn permits(&self) -> u32 {
        self.waiter.n
    }

    pub(crate) fn is_granted(&self) -> bool {
        matches!(*self.waiter.place(), Place::Granted)
    }

    /// Tells whether the permits are granted; if not, `waker` is woken when they are, in place of the one before.
    pub(crate) fn register(&self, waker: &Waker) -> bool {
        // A waker is not ours: it is cloned before the lock is taken, and what it replaces is dropped after.
        let mut waker = Some(waker.clone());
        let mut place = self.waiter.place();
        let Place::Waiting(registered) = &mut *place else { return true };
        std::mem::swap(registered, &mut waker);
        false
    }

    /// Parks this thread until the permits are granted, which it tells, or the deadline has come.
    pub(crate) fn wait(&self, clock: &dyn Clock) -> bool {
        let waker = unparker();
        while !self.register(&waker) {
            if clock.now() >= self.deadline {
                return false;
            }
            clock.park_until(self.deadline);
        }
        true
    }

    /// Leaves the queue. If the permits were granted, the caller holds them from now on and is to give them back.
    pub(crate) fn claim(self) -> bool {
        let mut place = self.waiter.place();
        let is_granted = matches!(*place, Place::Granted);
        if is_granted {
            *place = Place::Left;
        }
        drop(place);
        is_granted
    }

    /// Whether the permits are of these.
    pub(super) fn is_for(&self, permits: &Arc<Permits>) -> bool {
        Arc::ptr_eq(&self.permits, permits)
    }

    /// Leaves the queue with nothing.
    fn give_up(&self) {
        let Self { permits, waiter, .. } = self;
        let mut left = Place::Left;
        let to_wake = permits.change(|queue| {
            // Looked at under the queue's lock, under which alone permits are granted.
            left = waiter.put(Place::Left);
            if let Place::Waiting(_) = left {
                // Those who give up because their time is over stand in front.
                let place = queue.waiters.iter().position(|other| Arc::ptr_eq(other, waiter));
                queue.waiters.remove(place.expect("who waits stands in the queue"));
                // Relaxed: see `queue`.
                permits.word.fetch_sub(ONE_QUEUED, Ordering::Relaxed);
            }
        });
        to_wake.wake();
        if let Place::Granted = left {
            permits.give_back(waiter.n);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Only the ticket itself leaves.
        let has_left = matches!(*self.waiter.place(), Place::Left);
        if !has_left {
            self.give_up();
        }
    }
}
