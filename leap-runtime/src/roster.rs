//! All resources by name, in bounded memory.
//!
//! A name that somebody counts on always has a resource of its own. Any other has one while there is room below the cap; at
//! the cap one at rest makes room, or else the name shares a resource with others: those without rules share `(overflow)`,
//! those that rules hold for by patterns share one for each set of patterns, and its limits hold for them together.
//!
//! # Why one name is one resource
//!
//! The map holds an `Arc` of each resource, and hands out clones only under the lock of the name's shard. A resource is taken
//! away under the same lock, for writing, and only where `Arc::get_mut` says that the map's is the only one: then no call is in
//! it, none can find it before it is gone, and what those before have counted is seen. So the resource that a name gets later is
//! the only one of that name that anybody can count on; and an entry, which holds its resource, ends where it began.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use hashbrown::HashTable;

use crate::clock::Timestamp;
use crate::environment::Environment;
use crate::event::Overflow;
use crate::resource::Resource;
use crate::rule::pattern::overflow_of;
use crate::rule::{OVERFLOW, is_name};

/// How many shards there are. Fixed, so that memory does not depend on how many processors there are.
const N_SHARDS: usize = 64;

/// How many resources are looked at to find one at rest.
const SCAN: usize = 16;

/// Of how many shared resources it is remembered that they were told of; of further ones nobody is told.
const TOLD_MAX: usize = 1_000;

/// The resources of a registry.
pub(crate) struct Roster {
    environment: Arc<Environment>,
    shards: Box<[Padded]>,
    hasher: RandomState,
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

/// By itself on its cache lines: callers of two names do not hold each other up.
#[derive(Default)]
#[repr(align(128))]
struct Padded(RwLock<Shard>);

#[derive(Default)]
struct Shard {
    /// Places in `slots`.
    index: HashTable<u32>,
    slots: Vec<Slot>,
    /// Where the next search for one at rest begins.
    hand: usize,
}

struct Slot {
    hash: u64,
    resource: Arc<Resource>,
    /// Whether names without room share it. So it takes up no room itself.
    is_shared: bool,
    /// What the resource had counted when the hand last came by, and a moment before which that was.
    activity: u64,
    since: Timestamp,
}

/// What is known of a name that is entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Somebody counts on it by this name: it has a resource of its own, also beyond the cap.
    Own,
    /// Rules hold for it by these patterns, the most specific first; or none does.
    Matched(Vec<Arc<str>>),
}

impl Roster {
    /// For at most `max` resources beside those that somebody counts on by name.
    pub(crate) fn new(max: usize, environment: Arc<Environment>) -> Self {
        Self {
            environment,
            shards: (0..N_SHARDS).map(|_| Padded::default()).collect(),
            hasher: RandomState::new(),
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
        let hash = self.hasher.hash_one(name);
        self.read(shard_of(hash)).find(hash, name)
    }

    /// The resource that somebody counts on by its name, made if it is new. `make` is called with the shard locked, so that it
    /// is made either before or after whatever goes through [all](Self::all) of them.
    pub(crate) fn own(&self, name: &str, make: impl FnOnce(Arc<str>) -> Resource) -> Arc<Resource> {
        self.get_or_add(name, false, make)
    }

    fn get_or_add(
        &self,
        name: &str,
        is_shared: bool,
        make: impl FnOnce(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        let hash = self.hasher.hash_one(name);
        let known = self.read(shard_of(hash)).find(hash, name);
        known.unwrap_or_else(|| {
            let mut shard = self.write(shard_of(hash));
            shard.find(hash, name).unwrap_or_else(|| {
                let resource = Arc::new(make(name.into()));
                let n = if is_shared { &self.n_shared } else { &self.n };
                n.fetch_add(1, Relaxed);
                shard.insert(hash, resource, is_shared)
            })
        })
    }

    /// The resource that a call of that name enters. `place` is asked of a name that has none yet, with no lock held.
    #[inline]
    pub(crate) fn enter(
        &self,
        name: &str,
        place: impl FnOnce() -> Place,
        make: impl Fn(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        let known = if is_name(name) { self.get(name) } else { None };
        known.unwrap_or_else(|| self.enter_new(name, place, make))
    }

    #[cold]
    #[inline(never)]
    fn enter_new(
        &self,
        name: &str,
        place: impl FnOnce() -> Place,
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
        match place() {
            _ if name == OVERFLOW => self.get_or_add(name, true, make),
            Place::Own => self.own(name, make),
            Place::Matched(patterns) => {
                let added = self.add_if_room(name, &make);
                added.unwrap_or_else(|| self.share(name, &patterns, make))
            }
        }
    }

    /// The resource that a call of that name would enter now, unless that would be a new one.
    pub(crate) fn look(&self, name: &str, place: impl FnOnce() -> Place) -> Option<Arc<Resource>> {
        if !is_name(name) {
            return self.get(OVERFLOW);
        }
        self.get(name).or_else(|| match place() {
            Place::Matched(patterns) if !self.has_room_for(name) => self.get(&overflow_of(&patterns)),
            Place::Own | Place::Matched(_) => None,
        })
    }

    /// All resources, in the order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Resource>> {
        let of_shard = |shard: usize| -> Vec<_> {
            self.read(shard).slots.iter().map(|slot| Arc::clone(&slot.resource)).collect()
        };
        let mut all: Vec<_> = (0..N_SHARDS).flat_map(of_shard).collect();
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

    /// Adds a name, unless there is no room. The first time that the cap is in the way is told.
    fn add_if_room(&self, name: &str, make: impl FnOnce(Arc<str>) -> Resource) -> Option<Arc<Resource>> {
        let now = self.environment.now();
        let hash = self.hasher.hash_one(name);
        let home = shard_of(hash);
        // Dropped after the lock, for there is much to drop.
        let mut evicted = vec![];
        let mut shard = self.write(home);
        if let Some(known) = shard.find(hash, name) {
            return Some(known);
        }
        let (room, is_full) = match self.reserve() {
            Some(room) => (Some(room), false),
            None => (self.make_room(&mut shard, home, now, &mut evicted), true),
        };
        let added = room.map(|room| {
            let resource = Arc::new(make(name.into()));
            room.keep();
            shard.insert(hash, resource, false)
        });
        drop(shard);
        drop(evicted);
        if is_full && added.is_some() && !self.has_told_of_cap.swap(true, Relaxed) {
            self.tell(name, None);
        }
        added
    }

    fn reserve(&self) -> Option<Room<'_>> {
        // Relaxed, here and below: only a number.
        let reserved = self.n.fetch_update(Relaxed, Relaxed, |n| (n < self.max).then_some(n + 1));
        reserved.is_ok().then(|| Room(&self.n))
    }

    /// Has resources at rest make room: two at most, so that a roster that is beyond its cap shrinks.
    fn make_room(
        &self,
        shard: &mut Shard,
        home: usize,
        now: Timestamp,
        evicted: &mut Vec<Arc<Resource>>,
    ) -> Option<Room<'_>> {
        for _ in 0..2 {
            if !self.evict(shard, home, now, evicted) {
                return None;
            }
            self.evicted.fetch_add(1, Relaxed);
            // Its place is taken over as it is, so that nobody else gets it, unless it was beyond the cap.
            if self.n.fetch_update(Relaxed, Relaxed, |n| (n > self.max).then(|| n - 1)).is_err() {
                return Some(Room(&self.n));
            }
        }
        None
    }

    /// Takes a resource at rest away, if one is found among the next few: first here, then in the shards that nobody uses.
    /// Those that names share leave when they are met at rest, but make no room.
    fn evict(
        &self,
        shard: &mut Shard,
        home: usize,
        now: Timestamp,
        evicted: &mut Vec<Arc<Resource>>,
    ) -> bool {
        let mut budget = SCAN;
        let before = evicted.len();
        let mut found = shard.evict(&mut budget, now, evicted);
        for distance in 1..N_SHARDS {
            if found || budget == 0 {
                break;
            }
            // Not waited for: it may be waiting for this one.
            if let Some(mut other) = self.try_write((home + distance) % N_SHARDS) {
                found = other.evict(&mut budget, now, evicted);
            }
        }
        self.n_shared.fetch_sub(evicted.len() - before - usize::from(found), Relaxed);
        found
    }

    /// Whether [`add_if_room`](Self::add_if_room) would find room for that name.
    fn has_room_for(&self, name: &str) -> bool {
        let now = self.environment.now();
        let home = shard_of(self.hasher.hash_one(name));
        let wanted = (self.n.load(Relaxed) + 1).saturating_sub(self.max);
        let mut found = 0;
        let mut budget = SCAN * wanted.min(2);
        for shard in (0..N_SHARDS).map(|distance| (home + distance) % N_SHARDS) {
            if found >= wanted || budget == 0 {
                break;
            }
            let Some(mut shard) = self.try_write(shard) else { continue };
            let hand = shard.hand;
            for distance in 0..shard.slots.len().min(budget) {
                budget -= 1;
                let place = (hand + distance) % shard.slots.len();
                let slot = &mut shard.slots[place];
                found += usize::from(!slot.is_shared && slot.is_at_rest(now));
            }
        }
        found >= wanted && wanted <= 2
    }

    /// The resource that a name without room shares with others.
    fn share(
        &self,
        name: &str,
        patterns: &[Arc<str>],
        make: impl FnOnce(Arc<str>) -> Resource,
    ) -> Arc<Resource> {
        self.overflowed.fetch_add(1, Relaxed);
        let shared = overflow_of(patterns);
        let resource = self.get_or_add(&shared, true, make);
        if self.is_news(&shared) {
            self.has_told_of_cap.store(true, Relaxed);
            self.tell(name, Some(&shared));
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

    // What stands under these locks is whole at every moment, also where a holder panicked.

    #[inline]
    fn read(&self, shard: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard].0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, shard: usize) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard].0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_write(&self, shard: usize) -> Option<RwLockWriteGuard<'_, Shard>> {
        match self.shards[shard].0.try_write() {
            Ok(shard) => Some(shard),
            Err(TryLockError::Poisoned(shard)) => Some(shard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
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

impl Shard {
    #[inline]
    fn find(&self, hash: u64, name: &str) -> Option<Arc<Resource>> {
        let is_it = |place: &u32| {
            let slot = &self.slots[*place as usize];
            slot.hash == hash && **slot.resource.name() == *name
        };
        self.index.find(hash, is_it).map(|place| Arc::clone(&self.slots[*place as usize].resource))
    }

    fn insert(&mut self, hash: u64, resource: Arc<Resource>, is_shared: bool) -> Arc<Resource> {
        let place = u32::try_from(self.slots.len()).expect("memory ends before");
        let since = resource.node().active_before();
        self.slots.push(Slot { hash, resource: Arc::clone(&resource), is_shared, activity: 0, since });
        let slots = &self.slots;
        self.index.insert_unique(hash, place, |place| slots[*place as usize].hash);
        resource
    }

    fn evict(&mut self, budget: &mut usize, now: Timestamp, evicted: &mut Vec<Arc<Resource>>) -> bool {
        for _ in 0..self.slots.len().min(*budget) {
            *budget -= 1;
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            if !self.slots[self.hand].is_at_rest(now) {
                self.hand += 1;
                continue;
            }
            let Slot { resource, is_shared, .. } = self.remove(self.hand);
            evicted.push(resource);
            if !is_shared {
                return true;
            }
        }
        false
    }

    /// Takes a slot away; the last one takes its place.
    fn remove(&mut self, place: usize) -> Slot {
        let last = self.slots.len() - 1;
        let is_at = |wanted: usize| move |place: &u32| *place as usize == wanted;
        if let Ok(entry) = self.index.find_entry(self.slots[place].hash, is_at(place)) {
            entry.remove();
        }
        if let Some(moved) = self.index.find_mut(self.slots[last].hash, is_at(last)) {
            *moved = u32::try_from(place).expect("a place before one that fits");
        }
        self.slots.swap_remove(place)
    }
}

impl Slot {
    /// Whether nobody would miss the resource, nor is about to enter it.
    ///
    /// Statistics that are read bring a resource's buckets up to date, so when it was active is known only roughly; but what it
    /// has counted tells whether it was at all since the hand came by.
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

/// The shard of a name, by other bits of its hash than those that the index goes by.
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % N_SHARDS
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
