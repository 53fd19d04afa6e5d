//! Permits under every schedule of two or three threads: none is lost or doubled, nobody is forgotten or overtaken, and
//! the limit holds.

use std::sync::Arc as StdArc;
use std::task::{Wake, Waker};
use std::time::Duration;

use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread::{self, JoinHandle};

use super::*;
use crate::rule::RuleKind;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

fn after(limit: u32, previous: Option<&Isolation>) -> Arc<Isolation> {
    let rule = IsolationRule::new(limit).with_queue(Duration::from_secs(1)).unwrap();
    let rule = (RuleId::new(None, RuleKind::Isolation, 0), rule);
    Arc::new(Isolation::new(vec![rule], previous).unwrap())
}

fn isolation(limit: u32) -> Arc<Isolation> {
    after(limit, None)
}

/// With so many permits taken.
fn with_held(limit: u32, held: u32) -> Arc<Isolation> {
    let isolation = isolation(limit);
    isolation.take(held).unwrap();
    isolation
}

/// What publishing does to those who wait.
fn settle(current: Option<&Isolation>, previous: Option<&Isolation>) {
    Isolation::settle(current, previous).wake();
}

fn queue(isolation: &Isolation, n: u32) -> Ticket {
    isolation.queue(n, Timestamp::ZERO).unwrap()
}

struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: StdArc<Self>) {
        self.0.notify();
    }
}

/// Waits until the permits are granted: loom finds the schedules in which nobody wakes it.
fn wait(ticket: &Ticket) {
    let bell = StdArc::new(Bell(Notify::new()));
    let waker = Waker::from(StdArc::clone(&bell));
    while !ticket.register(&waker) {
        bell.0.wait();
    }
}

/// Spawns a thread that does this with the isolation.
fn spawn<T: 'static>(
    isolation: &Arc<Isolation>,
    body: impl FnOnce(&Isolation) -> T + 'static,
) -> JoinHandle<T> {
    let isolation = isolation.clone();
    thread::spawn(move || body(&isolation))
}

fn all_are_back(isolation: &Isolation, limit: u32) {
    assert_eq!((isolation.in_flight(), isolation.queued()), (0, 0));
    assert!(isolation.take(limit).is_ok() && isolation.take(1).is_err());
}

/// What a call does that holds the only permit. It counts as if it were alone: a call beside it, or one whose permits it
/// got without seeing what it did, would be forgotten.
fn pass(passed: &AtomicU32) {
    let before = passed.load(Ordering::Relaxed);
    passed.store(before + 1, Ordering::Relaxed);
}

#[test]
fn never_more_than_the_limit_in_flight_and_every_permit_comes_back() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let isolation = isolation(1);
        let passed = Arc::new(AtomicU32::new(0));
        let threads = [(); 3].map(|()| {
            let passed = passed.clone();
            spawn(&isolation, move |isolation| {
                let passes = isolation.take(1).is_ok();
                if passes {
                    pass(&passed);
                    isolation.give_back(1);
                }
                u32::from(passes)
            })
        });
        let n_passes: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        all_are_back(&isolation, 1);
        assert_eq!(passed.load(Ordering::Relaxed), n_passes);
    });
}

#[test]
fn whoever_queues_while_permits_come_back_is_granted_them() {
    check(|| {
        let isolation = with_held(1, 1);
        let waiter = spawn(&isolation, |isolation| {
            let ticket = queue(isolation, 1);
            wait(&ticket);
            isolation.redeem(ticket).unwrap();
            isolation.give_back(1);
        });
        isolation.give_back(1);
        waiter.join().unwrap();
        all_are_back(&isolation, 1);
    });
}

#[test]
fn those_who_wait_and_those_who_just_come_share_the_limit() {
    check(|| {
        let isolation = isolation(1);
        let passed = Arc::new(AtomicU32::new(0));
        let waiters = [(); 2].map(|()| {
            let passed = passed.clone();
            spawn(&isolation, move |isolation| {
                if isolation.take(1).is_err() {
                    let ticket = queue(isolation, 1);
                    wait(&ticket);
                    isolation.redeem(ticket).unwrap();
                }
                pass(&passed);
                isolation.give_back(1);
            })
        });
        let passes = isolation.take(1).is_ok();
        if passes {
            pass(&passed);
            isolation.give_back(1);
        }
        for waiter in waiters {
            waiter.join().unwrap();
        }
        all_are_back(&isolation, 1);
        assert_eq!(passed.load(Ordering::Relaxed), 2 + u32::from(passes));
    });
}

#[test]
fn nobody_overtakes_a_waiter_whose_permits_come_back() {
    check(|| {
        let isolation = with_held(1, 1);
        let first = queue(&isolation, 1);
        let giver = spawn(&isolation, |isolation| isolation.give_back(1));
        let second = spawn(&isolation, |isolation| {
            assert!(isolation.take(1).is_err());
            queue(isolation, 1)
        });
        let second = second.join().unwrap();
        assert!(!second.is_granted());
        wait(&first);
        giver.join().unwrap();
        drop(first);
        isolation.redeem(second).unwrap();
        isolation.give_back(1);
        all_are_back(&isolation, 1);
    });
}

#[test]
fn a_cancellation_that_meets_its_grant_hands_the_permits_on() {
    check(|| {
        let isolation = with_held(1, 1);
        let (first, second) = (queue(&isolation, 1), queue(&isolation, 1));
        let giver = spawn(&isolation, |isolation| isolation.give_back(1));
        let canceller = thread::spawn(move || drop(first));
        wait(&second);
        assert_eq!(isolation.in_flight(), 1);
        isolation.redeem(second).unwrap();
        isolation.give_back(1);
        giver.join().unwrap();
        canceller.join().unwrap();
        all_are_back(&isolation, 1);
    });
}

#[test]
fn a_call_that_gives_up_as_it_is_granted_keeps_its_permits_or_none() {
    check(|| {
        let isolation = with_held(1, 1);
        let ticket = queue(&isolation, 1);
        let giver = spawn(&isolation, |isolation| isolation.give_back(1));
        let claimed = ticket.claim();
        giver.join().unwrap();
        assert_eq!((isolation.in_flight(), isolation.queued()), (u32::from(claimed), 0));
        if claimed {
            isolation.give_back(1);
        }
        all_are_back(&isolation, 1);
    });
}

#[test]
fn permits_that_come_back_one_by_one_are_granted_together() {
    check(|| {
        let isolation = with_held(2, 2);
        let ticket = queue(&isolation, 2);
        let givers = [(); 2].map(|()| spawn(&isolation, |isolation| isolation.give_back(1)));
        wait(&ticket);
        assert_eq!(isolation.in_flight(), 2);
        drop(ticket);
        givers.into_iter().for_each(|giver| giver.join().unwrap());
        all_are_back(&isolation, 2);
    });
}

#[test]
fn a_raised_limit_reaches_whoever_is_queueing() {
    check(|| {
        let isolation = with_held(1, 1);
        let waiter = spawn(&isolation, |isolation| {
            let ticket = queue(isolation, 1);
            wait(&ticket);
            drop(ticket);
        });
        let raised = after(2, Some(&isolation));
        settle(Some(&raised), Some(&isolation));
        waiter.join().unwrap();
        isolation.give_back(1);
        all_are_back(&raised, 2);
    });
}

#[test]
fn a_lowered_limit_holds_for_what_is_handed_over_after_it() {
    check(|| {
        let isolation = with_held(2, 2);
        let tickets = [queue(&isolation, 1), queue(&isolation, 1)];
        let lowered = after(1, Some(&isolation));
        settle(Some(&lowered), Some(&isolation));
        let givers = [(); 2].map(|()| spawn(&isolation, |isolation| isolation.give_back(1)));
        wait(&tickets[0]);
        assert!(!tickets[1].is_granted());
        givers.into_iter().for_each(|giver| giver.join().unwrap());
        let [first, second] = tickets;
        drop(first);
        assert!(second.is_granted());
        drop(second);
        all_are_back(&lowered, 1);
    });
}
