//! Those who count a call beside its resource: its origin's share of it, its entrance's, its place in the call tree.
//!
//! They decide nothing. All count by the readings of the clock that the resource counts by, so a call stands in the
//! same bucket everywhere.

use std::sync::Arc;

use once_cell::sync::OnceCell;

use crate::blocked::Cause;
use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::named::Named;
use crate::node::Node;
use crate::sync::Ordering;
use crate::tree::{OTHER, Position};

/// The origins, or entrances, of a resource that get numbers of their own; all further ones share them.
pub(crate) const SHARES_MAX: usize = 200;

/// A resource's numbers by the name of who called: one origin's, or one entrance's.
#[derive(Debug)]
pub(crate) struct Share {
    name: Box<str>,
    node: Node,
}

impl AsRef<str> for Share {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl Share {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// As a resource does before anything is counted.
    #[inline]
    pub(crate) fn turn(&self, now: Timestamp) {
        if self.node.is_due(now) {
            self.node.turn(now);
        }
    }
}

/// A resource's numbers by origin, or by entrance. Made on first use: most resources have none.
#[derive(Debug, Default)]
pub(crate) struct Shares(OnceCell<Box<Named<Share>>>);

impl Shares {
    /// The share of `name`; that of `(other)` where [`SHARES_MAX`] others were there before.
    pub(crate) fn of(&self, name: &str, second_buckets: u32, now: Timestamp) -> Arc<Share> {
        let shares = self.0.get_or_init(Box::default);
        let make = |name: &str| Share { name: name.into(), node: Node::new(second_buckets, now) };
        // Where all places are taken nobody asks for the lock any more.
        let rest = || if shares.len() >= SHARES_MAX { shares.get(OTHER) } else { None };
        let known = || shares.get(name).or_else(rest);
        let added = || {
            let is_last = |n| n < SHARES_MAX || name == OTHER;
            shares.get_or_add(name, |n| is_last(n).then(|| make(name)))
        };
        known()
            .or_else(added)
            .or_else(|| shares.get_or_add(OTHER, |_| Some(make(OTHER))))
            .expect("made without a condition")
    }

    /// All shares, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Share>> {
        self.0.get().map_or_else(Vec::new, |shares| shares.all().to_vec())
    }
}

/// Who counts a call beside its resource, from its arrival to its end. Usually nobody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witnesses {
    pub(crate) origin: Option<Arc<Share>>,
    pub(crate) entrance: Option<Arc<Share>>,
    pub(crate) position: Option<Position>,
}

impl Witnesses {
    #[inline]
    fn shares(&self) -> impl Iterator<Item = &Share> {
        [&self.origin, &self.entrance].into_iter().filter_map(Option::as_deref)
    }

    /// Counts a call of `n` permits that its resource let through, and that waits for its start if `waits` says so.
    pub(crate) fn pass(&self, n: u32, waits: bool, now: Timestamp) {
        for share in self.shares() {
            share.turn(now);
            if waits {
                share.node.waiting().fetch_add(n.into(), Ordering::Relaxed);
            }
            if waits {
                // Relaxed: nobody decides on it here.
                share.node.passed().fetch_add(n.into(), Ordering::Relaxed);
                share.node.enter_waiting(n, now);
            } else {
                share.node.pass(n, now);
            }
        }
        if let Some(position) = &self.position {
            position.pass(n.into());
        }
    }

    /// Notes that such a call starts.
    pub(crate) fn start(&self, n: u32, now: Timestamp) {
        for share in self.shares() {
            share.turn(now);
            share.node.start(n, now);
        }
    }

    /// Notes that such a call has ended without a start.
    pub(crate) fn stop_waiting(&self, n: u32) {
        self.shares().for_each(|share| share.node.stop_waiting(n));
    }

    /// Counts a call of `n` permits that was turned away.
    pub(crate) fn block(&self, cause: Cause, n: u32, now: Timestamp) {
        for share in self.shares() {
            share.turn(now);
            share.node.block(cause, n, now);
        }
        if let Some(position) = &self.position {
            position.block(n.into());
        }
    }

    /// Counts `n` permits that were charged to the running call.
    pub(crate) fn charge(&self, n: u64, now: Timestamp) {
        for share in self.shares() {
            share.turn(now);
            share.node.passed().fetch_add(n, Ordering::Relaxed);
            share.node.charge(n, now);
        }
        if let Some(position) = &self.position {
            position.pass(n);
        }
    }

    /// Counts the call of `permits`, charged ones included, that ended.
    pub(crate) fn complete(&self, outcome: Outcome, permits: u64, rt_ns: u64, now: Timestamp) {
        for share in self.shares() {
            share.turn(now);
            share.node.complete(outcome, permits, rt_ns, now);
        }
        if let Some(position) = &self.position {
            position.complete(outcome, permits);
        }
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;
    use crate::tree::Tree;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_201st_name_and_all_further_ones_share_their_numbers() {
        let shares = Shares::default();
        assert!(shares.all().is_empty());
        for i in 0..SHARES_MAX {
            let name = format!("{i:03}");
            assert_eq!(shares.of(&name, 10, at(0)).name(), name);
        }
        assert_eq!(shares.of("200", 10, at(0)).name(), "(other)");
        assert_eq!(shares.of("201", 10, at(0)).name(), "(other)");
        assert_eq!(shares.of("199", 10, at(0)).name(), "199");
        assert_eq!(shares.all().len(), SHARES_MAX + 1);
    }

    #[test]
    fn an_origin_that_is_called_other_takes_its_own_place() {
        let shares = Shares::default();
        assert_eq!(shares.of("(other)", 10, at(0)).name(), "(other)");
        for i in 0..SHARES_MAX + 5 {
            drop(shares.of(&format!("{i:03}"), 10, at(0)));
        }
        let names: Vec<String> = shares.all().iter().map(|share| share.name().to_owned()).collect();
        assert!(names.len() <= SHARES_MAX + 1, "{}", names.len());
        assert_eq!(shares.of("new", 10, at(0)).name(), "(other)");
    }

    /// A12: at 999 ms on a clock that moves with each reading, which is therefore read once.
    #[test]
    fn a_pass_is_in_the_same_bucket_of_the_resource_its_origin_and_its_entrance() {
        let (shares, entrances, tree) = (Shares::default(), Shares::default(), Tree::default());
        let resource = Node::new(10, at(0));
        let (entered, ended) = (at(999), at(1_000));
        let witnesses = Witnesses {
            origin: Some(shares.of("vip", 10, entered)),
            entrance: Some(entrances.of("front", 10, entered)),
            position: Some(tree.entrance("front").child(&"orders.create".into())),
        };
        resource.turn(entered);
        resource.passed().fetch_add(2, Ordering::Relaxed);
        resource.enter(2, 2, entered);
        witnesses.pass(2, false, entered);
        resource.turn(ended);
        resource.complete(Outcome::Success, 2, 1_000_000, ended);
        witnesses.complete(Outcome::Success, 2, 1_000_000, ended);

        let nodes = [
            &resource,
            witnesses.origin.as_ref().unwrap().node(),
            witnesses.entrance.as_ref().unwrap().node(),
        ];
        for node in nodes {
            // At 1 999 ms the second began at 1 000 ms: it holds the end and not the pass, everywhere.
            node.turn(at(1_999));
            let second = node.second(at(1_999));
            assert_eq!((second.passed, second.of(Outcome::Success), second.timed_calls), (0, 2, 1));
            assert_eq!(node.passed_in_previous_second(at(1_999)), 2);
            assert_eq!((node.in_flight(), node.since_start().passed_calls), (0, 1));
        }
        assert_eq!(tree.read().entrance("front").unwrap().passed(), 2);
    }

    #[test]
    fn blocks_charges_and_ends_are_counted_by_every_witness() {
        let (shares, tree) = (Shares::default(), Tree::default());
        let origin = shares.of("vip", 10, at(0));
        let position = tree.entrance("front").child(&"a".into());
        let witnesses =
            Witnesses { origin: Some(Arc::clone(&origin)), entrance: None, position: Some(position) };
        witnesses.block(Cause::Flow, 3, at(10));
        witnesses.pass(1, false, at(20));
        witnesses.charge(4, at(30));
        assert_eq!((origin.node().in_flight(), tree.read().entrances()[0].in_flight()), (5, 5));
        witnesses.complete(Outcome::Exception, 5, 7, at(40));
        let totals = origin.node().since_start();
        assert_eq!((totals.passed, totals.passed_calls, totals.of(Outcome::Exception)), (5, 1, 5));
        assert_eq!(totals.blocked[Cause::Flow as usize], 3);
        let tree = tree.read();
        let node = tree.entrance("front").unwrap().child("a").unwrap();
        assert_eq!((node.passed(), node.blocked(), node.exceptions(), node.in_flight()), (5, 3, 5, 0));
        drop(Witnesses::default());
    }
}
