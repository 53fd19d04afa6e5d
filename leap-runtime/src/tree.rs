//! The call tree: who entered what, and how often. Written only by calls inside a context.
//!
//! ```text
//! front                  an entrance: what was entered in its contexts
//! ├─ orders.create       a resource, entered outside any body
//! │  └─ stock.read       a resource, entered inside the body of orders.create
//! └─ stock.read          the same resource, entered by another way: a node of its own
//! ```
//!
//! Nodes are made on first use and never leave; there are at most so many to a tree, and paths are at most so long.
//! What is beyond that is counted in one place, `(other)`.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::event::Outcome;
use crate::named::Named;
use crate::sync::{AtomicU64, Ordering};

/// The nodes of a registry's tree, its entrances included.
pub(crate) const NODES_MAX: usize = 10_000;
/// The length of a path. A function that calls itself makes it longer each time.
const DEPTH_MAX: u32 = 64;
/// The name of everything that has no node of its own.
pub(crate) const OTHER: &str = "(other)";

/// Who entered what in a registry.
#[derive(Debug)]
pub(crate) struct Tree {
    entrances: Named<Branch>,
    rest: Arc<Rest>,
}

/// What all nodes of a tree share. It holds none of them, so that dropping the tree frees them.
#[derive(Debug)]
struct Rest {
    most: usize,
    n_nodes: AtomicUsize,
    /// The calls that have no node of their own.
    counts: Counts,
}

/// A node: an entrance, or a resource that was entered by one path.
#[derive(Debug)]
struct Branch {
    name: Arc<str>,
    depth: u32,
    counts: Counts,
    children: Named<Branch>,
    rest: Arc<Rest>,
}

impl AsRef<str> for Branch {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

/// What happened at a node, in permits. Counters only grow.
#[derive(Debug, Default)]
struct Counts {
    passed: AtomicU64,
    blocked: AtomicU64,
    exceptions: AtomicU64,
    completed: AtomicU64,
}

impl Tree {
    pub(crate) fn new(n_nodes: usize) -> Self {
        let rest = Rest { most: n_nodes, n_nodes: AtomicUsize::new(0), counts: Counts::default() };
        Self { entrances: Named::default(), rest: Arc::new(rest) }
    }

    /// Where the calls of an entrance begin.
    pub(crate) fn entrance(&self, name: &str) -> Position {
        Position(find(&self.entrances, name, || name.into(), 0, &self.rest))
    }

    /// What is in the tree now.
    pub(crate) fn read(&self) -> CallTree {
        let mut entrances: Vec<_> =
            self.entrances.all().iter().map(|entrance| CallNode::of_entrance(entrance)).collect();
        let rest = CallNode::new(OTHER, &self.rest.counts, vec![]);
        if rest.passed + rest.blocked > 0 {
            entrances.push(rest);
        }
        CallTree { entrances }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(NODES_MAX)
    }
}

fn find(
    among: &Named<Branch>,
    name: &str,
    owned: impl FnOnce() -> Arc<str>,
    depth: u32,
    rest: &Arc<Rest>,
) -> Place {
    let known = || among.get(name);
    let made = || {
        if depth >= DEPTH_MAX || !rest.has_room() {
            return None;
        }
        among.get_or_add(name, |_| {
            rest.take_room().then(|| Branch {
                name: owned(),
                depth,
                counts: Counts::default(),
                children: Named::default(),
                rest: Arc::clone(rest),
            })
        })
    };
    known().or_else(made).map_or_else(|| Place::Rest(Arc::clone(rest)), Place::Branch)
}

impl Rest {
    /// Spares a full tree the lock around its nodes.
    fn has_room(&self) -> bool {
        self.n_nodes.load(Ordering::Relaxed) < self.most
    }

    fn take_room(&self) -> bool {
        // Relaxed: a number that nothing goes with.
        let one_more = |n: usize| (n < self.most).then_some(n + 1);
        self.n_nodes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }
}

/// A place in a tree, and its counters. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Position(Place);

#[derive(Clone, Debug)]
enum Place {
    Branch(Arc<Branch>),
    Rest(Arc<Rest>),
}

// A panic leaves nothing half-done here: nodes are only added, by code that does not panic, and counters only grow.
impl UnwindSafe for Position {}
impl RefUnwindSafe for Position {}

impl Position {
    /// The place of a resource that is entered here, made if it is new.
    pub(crate) fn child(&self, resource: &Arc<str>) -> Self {
        Self(match &self.0 {
            Place::Branch(branch) => {
                find(&branch.children, resource, || Arc::clone(resource), branch.depth + 1, &branch.rest)
            }
            Place::Rest(rest) => Place::Rest(Arc::clone(rest)),
        })
    }

    /// Whether this is a place in that tree.
    pub(crate) fn is_in(&self, tree: &Tree) -> bool {
        let rest = match &self.0 {
            Place::Branch(branch) => &branch.rest,
            Place::Rest(rest) => rest,
        };
        Arc::ptr_eq(rest, &tree.rest)
    }

    fn counts(&self) -> &Counts {
        match &self.0 {
            Place::Branch(branch) => &branch.counts,
            Place::Rest(rest) => &rest.counts,
        }
    }

    /// Counts permits that were let through.
    pub(crate) fn pass(&self, n: u64) {
        // Relaxed, here and below: counters that are read for people.
        self.counts().passed.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts permits that were turned away.
    pub(crate) fn block(&self, n: u64) {
        self.counts().blocked.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts a call of `permits` that ended.
    pub(crate) fn complete(&self, outcome: Outcome, permits: u64) {
        let counts = self.counts();
        if outcome == Outcome::Exception {
            counts.exceptions.fetch_add(permits, Ordering::Relaxed);
        }
        // Release: who sees the end sees the pass before it.
        counts.completed.fetch_add(permits, Ordering::Release);
    }
}

/// Who entered what, with counts, as it was when it was read.
///
/// [`Display`](fmt::Display) prints it as a table, indented. Only calls inside a [`Context`](crate::Context) are in it.
/// A registry's tree has at most 10 000 nodes, on paths of at most 64 resources; calls beyond that are counted together
/// as `(other)`, beside the entrances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(transparent))]
pub struct CallTree {
    entrances: Vec<CallNode>,
}

/// An entrance, or a resource that was entered by one path. Counts are in permits, since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CallNode {
    name: String,
    passed: u64,
    blocked: u64,
    exceptions: u64,
    in_flight: u64,
    children: Vec<CallNode>,
}

impl CallTree {
    /// The entrances, in the order of their names, and last `(other)` if anything was counted there.
    pub fn entrances(&self) -> &[CallNode] {
        &self.entrances
    }

    /// The entrance of that name.
    pub fn entrance(&self, name: &str) -> Option<&CallNode> {
        self.entrances.iter().find(|entrance| entrance.name == name)
    }

    /// All nodes with their depth, each before its children; an entrance is at depth 0.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &CallNode)> {
        let mut ahead: Vec<_> = self.entrances.iter().rev().map(|entrance| (0, entrance)).collect();
        std::iter::from_fn(move || {
            let (depth, node) = ahead.pop()?;
            ahead.extend(node.children.iter().rev().map(|child| (depth + 1, child)));
            Some((depth, node))
        })
    }
}

impl CallNode {
    fn new(name: &str, counts: &Counts, children: Vec<Self>) -> Self {
        // In this order: who is seen to have ended is seen to have passed.
        let completed = counts.completed.load(Ordering::Acquire);
        let passed = counts.passed.load(Ordering::Acquire);
        Self {
            name: name.to_owned(),
            passed,
            blocked: counts.blocked.load(Ordering::Relaxed),
            exceptions: counts.exceptions.load(Ordering::Relaxed),
            in_flight: passed.saturating_sub(completed),
            children,
        }
    }

    fn of(branch: &Branch) -> Self {
        let children = branch.children.all().iter().map(|child| Self::of(child)).collect();
        Self::new(&branch.name, &branch.counts, children)
    }

    /// An entrance is not called itself: its figures are those of what was entered there.
    fn of_entrance(branch: &Branch) -> Self {
        let mut entrance = Self::of(branch);
        let sum = |figure: fn(&Self) -> u64| entrance.children.iter().map(figure).sum();
        let (passed, blocked) = (sum(Self::passed), sum(Self::blocked));
        let (exceptions, in_flight) = (sum(Self::exceptions), sum(Self::in_flight));
        entrance.passed = passed;
        entrance.blocked = blocked;
        entrance.exceptions = exceptions;
        entrance.in_flight = in_flight;
        entrance
    }

    /// The entrance's name, or the resource's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Permits let through. An entrance's figures are the sums of its children's.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Permits turned away.
    pub fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Permits of calls that ended with an error that counts, or a panic.
    pub fn exceptions(&self) -> u64 {
        self.exceptions
    }

    /// Permits passed and not yet completed.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// What was entered here: inside the body of this resource, or in contexts of this entrance.
    pub fn children(&self) -> &[Self] {
        &self.children
    }

    /// The child of that name.
    pub fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }
}

impl fmt::Display for CallTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |(depth, node): (usize, &CallNode)| 2 * depth + node.name.chars().count();
        let width = self.iter().map(width).max().unwrap_or(0).max(8);
        write!(
            f,
            "{:<width$} {:>9} {:>9} {:>10} {:>9}",
            "calls", "passed", "blocked", "exceptions", "in flight"
        )?;
        for (depth, node) in self.iter() {
            let CallNode { name, passed, blocked, exceptions, in_flight, .. } = node;
            let (indent, width) = (2 * depth, width - 2 * depth);
            write!(
                f,
                "\n{:indent$}{name:<width$} {passed:>9} {blocked:>9} {exceptions:>10} {in_flight:>9}",
                ""
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::*;

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn a_resource_has_a_node_for_each_path_and_an_entrance_the_sums_of_its_own() {
        let tree = Tree::default();
        let front = tree.entrance("front");
        let create = front.child(&name("orders.create"));
        create.pass(1);
        let read = create.child(&name("stock.read"));
        read.pass(3);
        read.complete(Outcome::Exception, 3);
        front.child(&name("stock.read")).pass(1);
        front.child(&name("stock.read")).complete(Outcome::Cancelled, 1);
        front.child(&name("orders.create")).block(2);
        assert_eq!(
            tree.read().to_string(),
            "calls              passed   blocked exceptions in flight\n\
             front                   2         2          0         1\n  \
               orders.create         1         2          0         1\n    \
                 stock.read          3         0          3         0\n  \
               stock.read            1         0          0         0"
        );
        let read = tree.read();
        let front = read.entrance("front").unwrap();
        assert_eq!(front.child("orders.create").unwrap().child("stock.read").unwrap().passed(), 3);
        let depths: Vec<usize> = read.iter().map(|(depth, _)| depth).collect();
        assert_eq!(depths, [0, 1, 2, 1]);
    }

    #[test]
    fn what_has_no_room_in_the_tree_is_counted_as_other() {
        let tree = Tree::new(2);
        let front = tree.entrance("front");
        front.child(&name("a")).pass(1);
        let rest = front.child(&name("b"));
        rest.pass(1);
        rest.child(&name("c")).block(1);
        tree.entrance("back").child(&name("a")).pass(1);
        front.child(&name("a")).pass(1);
        assert!(rest.is_in(&tree) && front.is_in(&tree) && !rest.is_in(&Tree::default()));
        let read = tree.read();
        assert_eq!(read.entrance("front").unwrap().child("a").unwrap().passed(), 2);
        let rest = read.entrances().last().unwrap();
        assert_eq!((rest.name(), rest.passed(), rest.blocked()), ("(other)", 2, 1));
        assert_eq!(read.iter().count(), 3);
    }

    #[test]
    fn a_path_ends_at_64_resources() {
        let tree = Tree::default();
        let mut place = tree.entrance("front");
        for _ in 0..100 {
            place = place.child(&name("again"));
            place.pass(1);
        }
        let read = tree.read();
        assert_eq!(read.iter().map(|(depth, _)| depth).max(), Some(63));
        assert_eq!(read.entrance("(other)").unwrap().passed(), 100 - 63);
    }

    #[test]
    fn threads_together_make_no_more_nodes_than_there_may_be() {
        let tree = Tree::new(50);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let tree = &tree;
                scope.spawn(move || {
                    for i in 0..50 {
                        tree.entrance(&format!("{}", (i + thread) % 20)).child(&name(&i.to_string())).pass(1);
                    }
                });
            }
        });
        let read = tree.read();
        assert_eq!(read.iter().filter(|(_, node)| node.name() != OTHER).count(), 50);
        assert_eq!(read.entrances().iter().map(CallNode::passed).sum::<u64>(), 200);
    }

    #[test]
    fn a_tree_is_freed_when_nobody_stands_in_it_any_more() {
        let tree = Tree::default();
        let place = tree.entrance("front").child(&name("a"));
        let Place::Branch(branch) = &place.0 else { panic!("there is room") };
        let watch = Arc::downgrade(branch);
        drop(tree);
        place.pass(1);
        drop(place);
        assert!(watch.upgrade().is_none());
    }
}
