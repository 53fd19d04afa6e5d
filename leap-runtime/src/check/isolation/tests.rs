use std::collections::VecDeque;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, ManualClock};
use crate::rule::RuleKind;

const QUEUE: Duration = Duration::from_millis(50);

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn rules(rules: &[(u32, Duration)]) -> Vec<(RuleId, IsolationRule)> {
    let rules = rules.iter().enumerate().map(|(position, &(limit, time))| {
        let rule = IsolationRule::new(limit).with_queue(time).unwrap();
        (RuleId::new(None, RuleKind::Isolation, position), rule)
    });
    rules.collect()
}

fn isolation(limits: &[u32]) -> Isolation {
    let limits: Vec<_> = limits.iter().map(|limit| (*limit, Duration::ZERO)).collect();
    Isolation::new(rules(&limits), None).unwrap()
}

fn queueing(limit: u32) -> Isolation {
    Isolation::new(rules(&[(limit, QUEUE)]), None).unwrap()
}

/// What publishing does to those who wait.
fn settle(current: Option<&Isolation>, previous: Option<&Isolation>) {
    Isolation::settle(current, previous).wake();
}

/// What a reload makes of it.
fn reloaded(previous: &Isolation, limit: u32) -> Isolation {
    let current = Isolation::new(rules(&[(limit, QUEUE)]), Some(previous)).unwrap();
    settle(Some(&current), Some(previous));
    current
}

/// In flight, and waiting.
fn state(isolation: &Isolation) -> (u32, u32) {
    (isolation.in_flight(), isolation.queued())
}

fn granted(tickets: &[Ticket]) -> Vec<bool> {
    tickets.iter().map(Ticket::is_granted).collect()
}

/// Takes permits one by one until there are none, gives them back, and tells how many there were.
fn free(isolation: &Isolation) -> u32 {
    let mut n = 0;
    while isolation.take(1).is_ok() {
        n += 1;
    }
    (0..n).for_each(|_| isolation.give_back(1));
    n
}

#[test]
fn the_last_permit_passes_and_the_next_is_refused() {
    let isolation = isolation(&[10]);
    assert!(isolation.take(6).is_ok());
    assert!(isolation.take(5).is_err());
    assert!(isolation.take(4).is_ok());
    assert!(isolation.take(1).is_err());
    isolation.give_back(1);
    assert!(isolation.take(1).is_ok());
    assert!(isolation.take(u32::MAX).is_err());
}

#[test]
fn the_first_rule_that_refuses_is_named() {
    let isolation = isolation(&[5, 3, 2]);
    assert!(isolation.take(2).is_ok());
    assert_eq!(isolation.peek(1).unwrap_err().rule.position(), 2);
    assert_eq!(isolation.peek(2).unwrap_err().rule.position(), 1);
    assert_eq!(isolation.peek(9).unwrap_err().rule.position(), 0);
}

#[test]
fn the_largest_limit_there_is_holds_to_the_last_permit() {
    let isolation = queueing(u32::MAX);
    assert!(isolation.take(u32::MAX).is_ok());
    assert!(isolation.take(1).is_err());
    let ticket = isolation.queue(u32::MAX, at(0)).unwrap();
    isolation.give_back(u32::MAX);
    assert!(isolation.redeem(ticket).is_ok());
    assert_eq!(state(&isolation), (u32::MAX, 0));
}

#[test]
fn only_what_could_ever_fit_may_queue_and_only_where_the_rule_says_so() {
    let isolation = queueing(2);
    assert!(isolation.queue(3, at(0)).is_none());
    assert!(isolation.queue(2, at(0)).is_some());
    let without = self::isolation(&[2]);
    assert!(without.take(2).is_ok());
    assert!(without.queue(1, at(0)).is_none());
    assert!(queueing(0).queue(1, at(0)).is_none());
}

#[test]
fn a_call_waits_for_the_shortest_time_of_the_rules_that_refuse_it() {
    let ms = Duration::from_millis;
    let isolation = Isolation::new(rules(&[(2, ms(50)), (4, ms(20)), (4, ms(30))]), None).unwrap();
    assert!(isolation.take(2).is_ok());
    assert_eq!(isolation.queue(2, at(100)).unwrap().deadline(), at(150), "the second allows 4");
    let wide = Isolation::new(rules(&[(3, ms(50)), (3, ms(20)), (4, ms(10))]), None).unwrap();
    assert!(wide.take(2).is_ok());
    assert_eq!(wide.queue(2, at(100)).unwrap().deadline(), at(120));
    assert_eq!(wide.queue(3, at(100)).unwrap().deadline(), at(110));
    let never = Isolation::new(rules(&[(2, ms(50)), (2, ms(0))]), None).unwrap();
    assert!(never.take(2).is_ok());
    assert!(never.queue(1, at(100)).is_none());
}

#[test]
fn permits_that_come_back_go_to_those_who_wait_in_the_order_in_which_they_came() {
    let isolation = queueing(4);
    assert!(isolation.take(4).is_ok());
    let tickets = [2, 1, 3].map(|n| isolation.queue(n, at(0)).unwrap());
    assert_eq!(state(&isolation), (4, 3));
    isolation.give_back(1);
    assert_eq!((granted(&tickets), state(&isolation)), (vec![false; 3], (3, 3)), "the first needs 2");
    isolation.give_back(1);
    assert_eq!((granted(&tickets), state(&isolation)), (vec![true, false, false], (4, 2)));
    isolation.give_back(2);
    assert_eq!((granted(&tickets), state(&isolation)), (vec![true, true, false], (3, 1)));
    let [first, second, third] = tickets;
    assert!(first.claim() && second.claim());
    isolation.give_back(3);
    assert!(isolation.redeem(third).is_ok());
    assert_eq!(state(&isolation), (3, 0));
}

#[test]
fn several_heads_are_granted_at_once_if_they_fit() {
    let isolation = queueing(4);
    assert!(isolation.take(4).is_ok());
    let tickets = [1, 2, 2].map(|n| isolation.queue(n, at(0)).unwrap());
    isolation.give_back(4);
    assert_eq!((granted(&tickets), state(&isolation)), (vec![true, true, false], (3, 1)));
}

#[test]
fn nobody_overtakes_those_who_wait() {
    let isolation = queueing(3);
    assert!(isolation.take(2).is_ok());
    let two = isolation.queue(2, at(0)).unwrap();
    let refusal = isolation.take(1).unwrap_err();
    assert!(matches!(refusal.by, By::Isolation { limit: 3, in_flight: 2 }), "{refusal:?}");
    assert!(isolation.peek(1).is_err());
    let one = isolation.queue(1, at(0)).unwrap();
    assert!(!one.is_granted());
    drop(two);
    assert!(one.is_granted(), "who waits no longer holds up nobody");
    assert_eq!(state(&isolation), (3, 0));
}

#[test]
fn permits_that_came_back_before_the_call_queued_are_granted_at_once() {
    let isolation = queueing(1);
    assert!(isolation.take(1).is_ok() && isolation.take(1).is_err());
    isolation.give_back(1);
    let ticket = isolation.queue(1, at(0)).unwrap();
    assert!(ticket.register(Waker::noop()));
    assert!(ticket.claim());
    assert_eq!(state(&isolation), (1, 0));
}

#[test]
fn a_ticket_that_is_dropped_gives_up_its_place_or_its_permits() {
    let isolation = queueing(2);
    assert!(isolation.take(2).is_ok());
    let mut tickets: VecDeque<_> = (0..4).map(|_| isolation.queue(1, at(0)).unwrap()).collect();
    drop(tickets.remove(1));
    assert_eq!(state(&isolation), (2, 3));
    isolation.give_back(1);
    assert!(tickets[0].is_granted());
    drop(tickets.pop_front());
    assert_eq!((tickets[0].is_granted(), state(&isolation)), (true, (2, 1)), "handed on to the next");
    assert!(!tickets.pop_back().unwrap().claim(), "who claims too early leaves the queue");
    assert_eq!(state(&isolation), (2, 0));
    drop(tickets);
    isolation.give_back(1);
    assert_eq!((state(&isolation), free(&isolation)), ((0, 0), 2));
}

/// How often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn the_last_waker_that_was_registered_is_woken_once() {
    let isolation = queueing(1);
    assert!(isolation.take(1).is_ok());
    let bells: [Arc<Bell>; 2] = Default::default();
    let ticket = isolation.queue(1, at(0)).unwrap();
    for bell in &bells {
        let waker = Waker::from(Arc::clone(bell));
        assert!(!ticket.register(&waker) && !ticket.register(&waker));
    }
    assert_eq!(bells.each_ref().map(Arc::strong_count), [1, 2], "one waker is kept");
    isolation.give_back(1);
    assert!(ticket.register(Waker::noop()) && ticket.is_granted());
    assert_eq!(bells.each_ref().map(|bell| bell.0.load(Ordering::Relaxed)), [0, 1]);
    assert_eq!(bells.each_ref().map(Arc::strong_count), [1, 1]);
}

/// A call that enters the queue of its own isolation when it is woken: nothing is woken with a lock held.
struct Reenters(Arc<Isolation>);

impl Wake for Reenters {
    fn wake(self: Arc<Self>) {
        assert!(self.0.queue(1, at(0)).is_some());
    }
}

#[test]
fn whoever_is_woken_may_call_in_at_once() {
    let isolation = Arc::new(queueing(1));
    assert!(isolation.take(1).is_ok());
    let ticket = isolation.queue(1, at(0)).unwrap();
    assert!(!ticket.register(&Arc::new(Reenters(Arc::clone(&isolation))).into()));
    isolation.give_back(1);
    assert!(ticket.claim());
}

/// Panics where it is woken.
struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("a waker may not do this");
    }
}

#[test]
fn a_waker_that_panics_keeps_neither_the_others_asleep_nor_the_call_that_wakes_it_from_its_end() {
    let isolation = queueing(2);
    assert!(isolation.take(2).is_ok());
    let bell = Arc::new(Bell::default());
    let tickets = [Waker::from(Arc::new(Bomb)), Waker::from(Arc::clone(&bell))].map(|waker| {
        let ticket = isolation.queue(1, at(0)).unwrap();
        assert!(!ticket.register(&waker));
        ticket
    });
    isolation.give_back(2);
    assert_eq!((granted(&tickets), bell.0.load(Ordering::Relaxed)), (vec![true; 2], 1));
}

#[test]
fn a_raised_limit_lets_those_who_wait_go_on_at_once() {
    let one = queueing(1);
    assert!(one.take(1).is_ok());
    let tickets: Vec<_> = (0..3).map(|_| one.queue(1, at(0)).unwrap()).collect();
    let three = Isolation::new(rules(&[(3, QUEUE)]), Some(&one)).unwrap();
    assert_eq!(granted(&tickets), [false; 3], "not before it is published");
    settle(Some(&three), Some(&one));
    assert_eq!((granted(&tickets), state(&three)), (vec![true, true, false], (3, 1)));
    one.give_back(1);
    assert_eq!(granted(&tickets), [true; 3], "a call of the old plan goes by the new limit");
}

#[test]
fn a_lowered_limit_lets_nobody_go_on_before_it_holds() {
    let four = queueing(4);
    assert!(four.take(4).is_ok());
    let tickets: Vec<_> = [3, 1, 1].map(|n| four.queue(n, at(0)).unwrap()).into();
    let two = reloaded(&four, 2);
    four.give_back(2);
    assert_eq!(granted(&tickets), [false; 3]);
    four.give_back(1);
    assert_eq!(granted(&tickets), [false, true, false], "what asks for more than there is holds up nobody");
    assert!(two.take(1).is_err());
    let four = reloaded(&two, 4);
    assert_eq!(granted(&tickets), [false, true, false], "3 fit again, but 2 are in flight");
    four.give_back(1);
    assert_eq!((granted(&tickets), state(&four)), (vec![true, true, false], (4, 1)));
}

#[test]
fn where_the_last_rule_goes_away_those_who_wait_go_on() {
    let old = queueing(1);
    assert!(old.take(1).is_ok());
    let tickets: Vec<_> = (0..3).map(|_| old.queue(1, at(0)).unwrap()).collect();
    settle(None, Some(&old));
    assert_eq!(granted(&tickets), [true; 3]);
    assert!(old.queue(1, at(0)).unwrap().is_granted(), "who still goes by the old plan, too");

    let new = queueing(2);
    for (ticket, is_free) in tickets.into_iter().zip([true, true, false]) {
        assert_eq!(new.redeem(ticket).is_ok(), is_free, "permits of another time are none of these");
    }
    assert_eq!(state(&new), (2, 0));
    old.give_back(1);
    assert_eq!(state(&old), (0, 0));
}

/// Makes the call of a plan that has nothing but this isolation, and waits for its permits if it has to.
fn enter(isolation: &Isolation, clock: &ManualClock) -> bool {
    if isolation.take(1).is_ok() {
        return true;
    }
    let Some(ticket) = isolation.queue(1, clock.now()) else { return false };
    ticket.wait(clock) && isolation.redeem(ticket).is_ok()
}

#[test]
fn waiters_that_time_out_take_no_permit_with_them() {
    // A14
    let (isolation, clock) = (queueing(8), ManualClock::new());
    let rounds = 1_000;
    let (all_held, all_out) = (Barrier::new(9), Barrier::new(9));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    all_held.wait();
                    assert!(!enter(&isolation, &clock));
                    all_out.wait();
                }
            });
        }
        for round in 0..rounds {
            assert!((0..8).all(|_| isolation.take(1).is_ok()), "round {round}");
            all_held.wait();
            while isolation.queued() < 8 {
                thread::yield_now();
            }
            assert_eq!(state(&isolation), (8, 8));
            clock.advance(QUEUE);
            all_out.wait();
            assert_eq!(state(&isolation), (8, 0));
            (0..8).for_each(|_| isolation.give_back(1));
            assert_eq!(free(&isolation), 8, "round {round}");
        }
    });
}

#[test]
fn a_thread_that_waits_goes_on_when_it_is_granted_its_permits_or_at_its_deadline_and_not_before() {
    let (isolation, clock) = (queueing(1), ManualClock::new());
    assert!(isolation.take(1).is_ok());
    thread::scope(|scope| {
        let late = scope.spawn(|| enter(&isolation, &clock));
        while isolation.queued() < 1 {
            thread::yield_now();
        }
        clock.advance(QUEUE.saturating_sub(Duration::from_nanos(1)));
        assert_eq!(isolation.queued(), 1);
        clock.advance(Duration::from_nanos(1));
        assert!(!late.join().unwrap());
        let in_time = scope.spawn(|| enter(&isolation, &clock));
        while isolation.queued() < 1 {
            thread::yield_now();
        }
        isolation.give_back(1);
        assert!(in_time.join().unwrap());
    });
    assert_eq!(state(&isolation), (1, 0));
}

#[test]
fn under_threads_the_limit_holds_and_every_permit_comes_back() {
    let (isolation, clock) = (queueing(3), ManualClock::new());
    let inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for i in 0..8 {
            let (isolation, clock, inside) = (&isolation, &clock, &inside);
            scope.spawn(move || {
                for j in 0..500 {
                    if (i + j) % 11 == 0 {
                        // A call that is cancelled while it waits, or after it was granted its permits.
                        drop(isolation.queue(1, clock.now()));
                    } else if enter(isolation, clock) {
                        assert!(inside.fetch_add(1, Ordering::Relaxed) < 3);
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::Relaxed);
                        isolation.give_back(1);
                    }
                }
            });
        }
    });
    assert_eq!((state(&isolation), free(&isolation)), ((0, 0), 3));
}

#[test]
fn an_isolation_and_its_tickets_go_to_any_thread_and_over_caught_panics() {
    fn is_free<T: Send + Sync + 'static + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_free::<Isolation>();
    is_free::<Ticket>();
}

/// What happens to an isolation.
#[derive(Clone, Debug)]
enum Step {
    Enter(u32),
    /// One of the calls in flight ends.
    End(usize),
    /// One of those who wait or were granted is dropped.
    Cancel(usize),
    /// One of those who wait or were granted is polled: it goes on if it was granted.
    Poll(usize),
    /// Time goes on, and whoever has waited until its deadline gives up.
    Advance(u64),
    Reload(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u32..5).prop_map(Step::Enter),
        4 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::Cancel),
        3 => any::<usize>().prop_map(Step::Poll),
        2 => (0_u64..40).prop_map(Step::Advance),
        1 => (0_u32..8).prop_map(Step::Reload),
    ]
}

/// The calls in flight and those who wait, as plain lists.
#[derive(Debug, Default)]
struct Model {
    limit: u32,
    inside: Vec<u32>,
    waiting: Vec<Waiting>,
}

/// A call that waits, or was granted and has not gone on.
#[derive(Debug)]
struct Waiting {
    n: u32,
    deadline: u64,
    is_granted: bool,
}

impl Model {
    fn in_flight(&self) -> u32 {
        let granted = self.waiting.iter().filter(|call| call.is_granted).map(|call| call.n);
        self.inside.iter().copied().chain(granted).sum()
    }

    fn queued(&self) -> u32 {
        self.waiting.iter().map(|call| u32::from(!call.is_granted)).sum()
    }

    fn passes(&self, n: u32) -> bool {
        self.queued() == 0 && self.in_flight() + n <= self.limit
    }

    /// Permits go to the first of those who wait for as many as there are at all.
    fn hand_over(&mut self) {
        loop {
            let room = self.limit.saturating_sub(self.in_flight());
            let first = self.waiting.iter_mut().find(|call| !call.is_granted && call.n <= self.limit);
            match first {
                Some(first) if first.n <= room => first.is_granted = true,
                _ => return,
            }
        }
    }
}

/// The element of a random choice, taken out.
fn pick<T>(list: &mut Vec<T>, choice: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(choice % list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_isolation_with_a_queue_agrees_with_plain_lists(limit in 0_u32..8, steps in vec(step(), 1..120)) {
        let mut isolation = queueing(limit);
        let mut model = Model { limit, ..Model::default() };
        let (mut inside, mut tickets) = (Vec::<u32>::new(), Vec::<Ticket>::new());
        let mut now = 0;
        for step in steps {
            match step {
                Step::Enter(n) => {
                    let passes = isolation.take(n).is_ok();
                    prop_assert_eq!(passes, model.passes(n));
                    if passes {
                        inside.push(n);
                        model.inside.push(n);
                    } else {
                        let ticket = isolation.queue(n, at(now));
                        prop_assert_eq!(ticket.is_some(), n <= model.limit);
                        if let Some(ticket) = ticket {
                            model.waiting.push(Waiting { n, deadline: now + 50, is_granted: false });
                            prop_assert_eq!(ticket.deadline(), at(now + 50));
                            tickets.push(ticket);
                        }
                    }
                }
                Step::End(choice) => {
                    pick(&mut model.inside, choice);
                    if let Some(n) = pick(&mut inside, choice) {
                        isolation.give_back(n);
                    }
                }
                Step::Cancel(choice) => {
                    pick(&mut model.waiting, choice);
                    pick(&mut tickets, choice);
                }
                Step::Poll(choice) => {
                    let granted = tickets.get(choice % tickets.len().max(1)).is_some_and(Ticket::is_granted);
                    if granted {
                        let n = pick(&mut model.waiting, choice).unwrap().n;
                        prop_assert!(isolation.redeem(pick(&mut tickets, choice).unwrap()).is_ok());
                        inside.push(n);
                        model.inside.push(n);
                    }
                }
                Step::Advance(by) => {
                    now += by;
                    // One after another, as each makes room for the next to be granted.
                    while let Some(late) = model.waiting.iter().position(|call| !call.is_granted && call.deadline <= now) {
                        let ticket = tickets.remove(late);
                        prop_assert!(ticket.deadline() <= at(now) && !ticket.claim());
                        model.waiting.remove(late);
                        model.hand_over();
                    }
                }
                Step::Reload(limit) => {
                    isolation = reloaded(&isolation, limit);
                    model.limit = limit;
                }
            }
            model.hand_over();
            let expected: Vec<_> = model.waiting.iter().map(|call| call.is_granted).collect();
            prop_assert_eq!(granted(&tickets), expected);
            prop_assert_eq!(state(&isolation), (model.in_flight(), model.queued()));
        }
        drop(tickets);
        for n in inside {
            isolation.give_back(n);
        }
        prop_assert_eq!((state(&isolation), free(&isolation)), ((0, 0), model.limit));
    }
}
