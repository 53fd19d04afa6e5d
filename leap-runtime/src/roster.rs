//! All resources by name, in bounded memory.
//!
//! A name that somebody counts on always has a resource of its own. Any other has one while there is room below the cap; at
//! the cap one at rest makes room, or else the name shares a resource with others: those without rules share `(overflow)`,
//! those that rules hold for by patterns share one for each set of patterns, and its limits hold for them together.
//!
//! # Why one name is one resource
//!
//! The map holds an `Arc` of each resource, and clones are handed out only under the lock of the name's shard. A resource is
//! taken away under the same lock, for writing, and only where `Arc::get_mut` says that the map's is the only one: then no call
//! is in it, none can find it before it is gone, and what those before have counted is seen. So the resource that a name gets
//! later is the only one of that name that anybody can count on; and an entry, which holds its resource, ends where it began.
//!
//! # Who makes room
//!
//! A queue has each name of the map once, from soon after it was added. Whoever needs room tries the first few: one at rest
//! leaves, any other goes to the back. Nobody leaves but by the queue, so it has no names of those that are gone. It is locked
//! before a shard and never while one is: shards are waited for with the queue locked, and never the other way round.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::clock::Timestamp;
use crate::environment::Environment;
use crate::event::Overflow;
use crate::resource::Resource;
use crate::rule::{OVERFLOW, is_name};

/// How many resources are looked at to find one at rest.
const SCAN: usize = 16;

/// Of how many shared resources it is remembered that they were told of; of further ones nobody is told.
const TOLD_MAX: usize = 1_000;

/// The resources of a registry.
pub(crate) struct Roster {
    environment: Arc<Environment>,
    /// Each key is its resource's own name.
    slots: DashMap<Arc<str>, Slot>,
    /// The names, in the order in which they are asked to make room.
    queue: Mutex<VecDeque<Arc<str>>>,
    max: usize,
    /// Resources that are there, or for which a place is reserved, but for those that names share.
    n: AtomicUsize,
    /// Those.
    n_shared: AtomicUsize,
    evicted: AtomicU64,
    overflowed: AtomicU64,
    unusable: AtomicU64,
    has_told_of_cap: AtomicBool,
    has_told_of_unusable: AtomicBool,
    /// The shared resources that were told of.
    told: RwLock<BTreeSet<Box<str>>>,
}

struct Slot {
    resource: Arc<Resource>,
    /// Whether names without room share it. So it takes up no room itself.
    is_shared: bool,
    /// What the resource had counted when it was last asked to make room, and a moment before which that was.
    activity: u64,
    since: Timestamp,
}

impl Roster {
    /// For at most `max` resources beside those that somebody counts on by name.
    pub(crate) fn new(max: usize, environment: Arc<Environment>) -> Self {
        Self {
            environment,
            slots: DashMap::new(),
            queue: Mutex::default(),
            max,
            n: AtomicUsize::new(0),
            n_shared: AtomicUsize::new(0),
            evicted: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            unusable: AtomicU64::new(0),
            has_told_of_cap: AtomicBool::new(false),
            has_told_of_unusable: AtomicBool::new(false),
            told: RwLock::default(),
        }
    }

    /// The resource of that name, if there is one.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Resource>> {
        self.slots.get(name).map(|slot| Arc::clone(&slot.resource))
    }

    /// The resource that somebody counts on by its name, made if it is new. `make` is called with the shard locked, so that it
    /// is made either before or after whatever goes through [all](Self::all) of them.
    pub(crate) fn own(&self, name: &str, make: impl FnOnce(Arc<str>) -> Resource) -> Arc<Resource> {
        self.get_or_add(name, false, make)
    }

    /// The resource that a call of that name enters. `shared` is asked for the [name](crate::rule::pattern::overflow_of) of the
    /// one that it shares if there is no room, with no lock held.
    #[inline]
    pub(crate) fn enter(
        &self,
        name: &str,
        shared: impl FnOnce() -> Cow<'static, str>,
        make: impl Fn(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        let known = if is_name(name) { self.get(name) } else { None };
        known.unwrap_or_else(|| self.enter_new(name, shared, make))
    }

    #[cold]
    #[inline(never)]
    fn enter_new(
        &self,
        name: &str,
        shared: impl FnOnce() -> Cow<'static, str>,
        make: impl Fn(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        if !is_name(name) {
            self.unusable.fetch_add(1, Relaxed);
            let shared = self.get_or_add(OVERFLOW, true, make);
            if !self.has_told_of_unusable.swap(true, Relaxed) {
                self.tell(name, Some(OVERFLOW));
            }
            return shared;
        }
        if name == OVERFLOW {
            return self.get_or_add(name, true, make);
        }
        if self.is_counted_on(name) {
            return self.own(name, make);
        }
        self.add_if_room(name, &make).unwrap_or_else(|| self.share(name, &shared(), make))
    }

    /// The resource that a call of that name would enter now, unless that would be a new one.
    pub(crate) fn look(
        &self,
        name: &str,
        shared: impl FnOnce() -> Cow<'static, str>,
    ) -> Option<Arc<Resource>> {
        if !is_name(name) {
            return self.get(OVERFLOW);
        }
        self.get(name).or_else(|| {
            let is_new = self.is_counted_on(name) || self.has_room();
            if is_new { None } else { self.get(&shared()) }
        })
    }

    /// All resources, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let mut all: Vec<_> = self.slots.iter().map(|slot| Arc::clone(&slot.resource)).collect();
        all.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        all
    }

    pub(crate) fn stats(&self) -> RosterStats {
        RosterStats {
            resources: self.n.load(Relaxed),
            max_resources: self.max,
            shared: self.n_shared.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            overflowed: self.overflowed.load(Relaxed),
            unusable: self.unusable.load(Relaxed),
        }
    }

    /// Whether somebody counts on a name that has no resource: one that a function has, or a rule names, always has one.
    fn is_counted_on(&self, name: &str) -> bool {
        !self.environment.is_resource_on(name)
    }

    fn get_or_add(
        &self,
        name: &str,
        is_shared: bool,
        make: impl FnOnce(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        self.get(name).unwrap_or_else(|| {
            let n = if is_shared { &self.n_shared } else { &self.n };
            // Relaxed, here and below: only a number.
            n.fetch_add(1, Relaxed);
            self.add(name, is_shared, Room(n), make)
        })
    }

    /// Adds a name, unless there is no room. The first time that the cap is in the way is told.
    fn add_if_room(&self, name: &str, make: impl FnOnce(Arc<str>) -> Resource) -> Option<Arc<Resource>> {
        if let Some(room) = self.reserve() {
            return Some(self.add(name, false, room, make));
        }
        // The last place may have gone to this very name.
        let Some(room) = self.make_room() else { return self.get(name) };
        let added = self.add(name, false, room, make);
        if !self.has_told_of_cap.swap(true, Relaxed) {
            self.tell(name, None);
        }
        Some(added)
    }

    /// Adds a name, unless somebody else has just done so.
    fn add(
        &self,
        name: &str,
        is_shared: bool,
        room: Room<'_>,
        make: impl FnOnce(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        let resource = match self.slots.entry(name.into()) {
            Entry::Occupied(known) => return Arc::clone(&known.get().resource),
            Entry::Vacant(place) => {
                let resource = Arc::new(make(Arc::clone(place.key())));
                room.keep();
                place.insert(Slot::of(Arc::clone(&resource), is_shared));
                resource
            }
        };
        self.queue().push_back(Arc::clone(resource.name()));
        resource
    }

    fn reserve(&self) -> Option<Room<'_>> {
        let reserved = self.n.fetch_update(Relaxed, Relaxed, |n| (n < self.max).then_some(n + 1));
        reserved.is_ok().then(|| Room(&self.n))
    }

    /// Takes resources at rest away, if the next few are any, until there is room for one. Those that names share leave when
    /// they are met at rest, but make no room.
    fn make_room(&self) -> Option<Room<'_>> {
        let now = self.environment.now();
        // Dropped after the lock, for there is much to drop.
        let mut gone = vec![];
        let mut queue = self.queue();
        for _ in 0..queue.len().min(SCAN) {
            let left = queue.front().and_then(|name| {
                let left = self.slots.remove_if_mut(name, |_, slot| slot.is_at_rest(now));
                left.map(|(_, slot)| slot)
            });
            let Some(slot) = left else {
                queue.rotate_left(1);
                continue;
            };
            queue.pop_front();
            let is_shared = slot.is_shared;
            gone.push(slot);
            if is_shared {
                self.n_shared.fetch_sub(1, Relaxed);
                continue;
            }
            self.evicted.fetch_add(1, Relaxed);
            // Its place is taken over as it is, so that nobody else gets it, unless it was beyond the cap.
            if self.n.fetch_update(Relaxed, Relaxed, |n| (n > self.max).then(|| n - 1)).is_err() {
                return Some(Room(&self.n));
            }
        }
        None
    }

    /// Whether a new name would find room.
    fn has_room(&self) -> bool {
        let now = self.environment.now();
        let wanted = (self.n.load(Relaxed) + 1).saturating_sub(self.max);
        let makes_room = |name: &&Arc<str>| {
            let slot = self.slots.get_mut(*name);
            slot.is_some_and(|mut slot| !slot.is_shared && slot.is_at_rest(now))
        };
        let queue = self.queue();
        queue.iter().take(SCAN).filter(makes_room).take(wanted).count() == wanted
    }

    /// The resource that a name without room shares with others.
    fn share(&self, name: &str, shared: &str, make: impl FnOnce(Arc<str>) -> Resource) -> Arc<Resource> {
        self.overflowed.fetch_add(1, Relaxed);
        let resource = self.get_or_add(shared, true, make);
        if self.is_news(shared) {
            self.has_told_of_cap.store(true, Relaxed);
            self.tell(name, Some(shared));
        }
        resource
    }

    fn is_news(&self, shared: &str) -> bool {
        if self.told.read().unwrap_or_else(PoisonError::into_inner).contains(shared) {
            return false;
        }
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        told.len() < TOLD_MAX && told.insert(shared.into())
    }

    fn tell(&self, name: &str, shared: Option<&str>) {
        let overflow = Overflow { name, shared, max_resources: self.max };
        self.environment.tell(|observer| observer.on_overflow(&overflow));
    }

    /// Whole at every moment, also where a holder panicked.
    fn queue(&self) -> MutexGuard<'_, VecDeque<Arc<str>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stats().fmt(f)
    }
}

/// A place for one resource, which is free again if none comes.
struct Room<'a>(&'a AtomicUsize);

impl Room<'_> {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Slot {
    fn of(resource: Arc<Resource>, is_shared: bool) -> Self {
        let since = resource.node().active_before();
        Self { resource, is_shared, activity: 0, since }
    }

    /// Whether nobody would miss the resource, nor is about to enter it.
    ///
    /// Statistics that are read bring a resource's buckets up to date, so when it was active is known only roughly; but what it
    /// has counted tells whether it was at all since it was last asked.
    fn is_at_rest(&mut self, now: Timestamp) -> bool {
        // Whoever had it has left, and what they have counted is seen.
        let Some(resource) = Arc::get_mut(&mut self.resource) else { return false };
        let activity = resource.node().activity();
        if activity != self.activity {
            self.activity = activity;
            self.since = resource.node().active_before();
        }
        resource.is_at_rest(self.since, now)
    }
}

/// How many resources a registry has, and what became of names that found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RosterStats {
    resources: usize,
    max_resources: usize,
    shared: usize,
    evicted: u64,
    overflowed: u64,
    unusable: u64,
}

impl RosterStats {
    /// The resources that there are now, without those that names share. More than [the most](Self::max_resources) where so
    /// many are counted on by their names.
    pub fn resources(&self) -> usize {
        self.resources
    }

    /// The most that there may be of those that nobody counts on by their names: see
    /// [`Builder::max_resources`](crate::Builder::max_resources).
    pub fn max_resources(&self) -> usize {
        self.max_resources
    }

    /// The resources that names without room share, which take up no room themselves: `(overflow)`, and one for each set of
    /// patterns by which rules hold for such names.
    pub fn shared(&self) -> usize {
        self.shared
    }

    /// The resources at rest that made room for others, since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The calls that entered a resource shared with other names, because there was no room for one of their own.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The calls whose name was empty or over 1 KiB long. They share the resource `(overflow)`.
    pub fn unusable(&self) -> u64 {
        self.unusable
    }
}

impl fmt::Display for RosterStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resources, max_resources, shared, evicted, overflowed, unusable } = self;
        write!(
            f,
            "resources: {resources} of {max_resources}, {evicted} made room, {shared} shared; \
             calls without one of their own: {overflowed}, {unusable} for their names"
        )
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
