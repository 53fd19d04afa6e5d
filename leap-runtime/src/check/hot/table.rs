//! The gates of all values of a parameter, in bounded memory.
//!
//! A gate is found and asked under the read lock of its shard, so that nobody can take it away meanwhile; what it
//! decides on are words of its own, so callers of one value do not hold each other up. A gate is made, converted or
//! taken away under the write lock. No lock is held while anybody waits or runs.
//!
//! # Why a limit holds at the cap
//!
//! - Only a gate at rest is taken away: it answers as the new one that its value gets when it comes again. Whoever read
//!   the clock before that and comes after it reads it again, so it cannot look into the past that is gone.
//! - A value that finds no place shares the overflow gate. When it gets a place later, the permits that passed there count
//!   as its own; and while any of its calls from there is in flight, it stays there (the guests).
//! - Both are decided under the write lock of the value's shard, which all of its calls go through.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, TryLockError};

use hashbrown::HashTable;

use super::Refused;
use super::gate::{Gate, Part, Permits, Turn};
use super::limits::Limits;
use crate::clock::{Reading, Timestamp};
use crate::key::Key;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering::Relaxed, RwLock};

/// How many shards there are. Fixed, so that memory does not depend on how many processors there are.
const N_SHARDS: usize = if cfg!(any(leap_loom, leap_shuttle)) { 1 } else { 16 };

/// How many gates are looked at to find one at rest.
const SCAN: usize = 32;

/// How many searches of one call may be in vain, before its further values are not searched for.
const VAIN_AT_MOST: u32 = 8;

/// The gates of a rule, kept over reloads.
#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Padded]>,
    n_keys: AtomicU32,
    /// Made when it is first needed.
    overflow: RwLock<Option<Gate>>,
    /// Which values have calls from the overflow gate in flight: one hash per call and value.
    guests: Arc<Mutex<Vec<u64>>>,
    overflowed: AtomicU64,
}

/// By itself on its cache lines: two threads on two values take 105 ns a call, and 154 ns side by side.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(RwLock<Shard>);

#[derive(Debug, Default)]
struct Shard {
    /// Places in `slots`.
    index: HashTable<u32>,
    slots: Vec<Slot>,
    /// Where the next search for a gate at rest begins. A hint, and so none of what the models look at.
    hand: AtomicUsize,
    /// The latest reading by which a gate was at rest and taken away.
    swept_at: Timestamp,
}

#[derive(Debug)]
struct Slot {
    hash: u64,
    key: Key,
    gate: Gate,
}

/// A question for the gate of one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask<'a> {
    pub(super) key: &'a Key,
    pub(super) hash: u64,
    pub(super) n: u64,
    /// How often the call names the value.
    pub(super) n_named: u32,
    pub(super) limits: &'a Arc<Limits>,
    /// It has limits of its own, and so always a gate.
    pub(super) is_exception: bool,
    pub(super) generation: u32,
    pub(super) max_keys: u32,
}

impl Ask<'_> {
    /// What the value's own gate said, for the call.
    fn told<T>(&self, told: Result<T, Refused>) -> Result<T, Refused> {
        match told {
            Err(refused) if self.n_named > 1 => Err(refused.together(self.n, false)),
            told => told,
        }
    }
}

/// What a call holds of one value: its permits in flight until this is dropped, and its turn.
#[derive(Debug)]
pub(super) struct Held {
    // In the order in which they are to go: a value is a guest until its permits are back.
    permits: Option<Permits>,
    turn: Option<Turn>,
    _guests: Option<Guests>,
}

impl Held {
    pub(super) fn has_permits(&self) -> bool {
        self.permits.is_some()
    }

    /// Gives the turn back, unless another one was taken behind it.
    pub(super) fn give_back(&self) {
        if let Some(turn) = &self.turn {
            turn.give_back();
        }
    }
}

/// The values by which a call from the overflow gate is in flight.
#[derive(Debug)]
struct Guests {
    all: Arc<Mutex<Vec<u64>>>,
    hashes: Box<[u64]>,
}

impl Drop for Guests {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for hash in &self.hashes {
            if let Some(place) = all.iter().position(|other| other == hash) {
                all.swap_remove(place);
            }
        }
    }
}

/// What a value lets a call do: when to start if not now, and what it holds until its end.
pub(super) type Taken = (Option<Timestamp>, Option<Held>);

fn taken(part: Part, guests: Option<Guests>) -> Taken {
    let Part { start, permits, turn } = part;
    let held = permits.is_some() || turn.is_some();
    (start, held.then_some(Held { permits, turn, _guests: guests }))
}

/// Where a value is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Slot(usize),
    Overflow,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            shards: (0..N_SHARDS).map(|_| Padded(RwLock::default())).collect(),
            n_keys: AtomicU32::new(0),
            overflow: RwLock::default(),
            guests: Arc::default(),
            overflowed: AtomicU64::new(0),
        }
    }

    /// How many values have gates of their own.
    pub(super) fn n_keys(&self) -> u32 {
        self.n_keys.load(Relaxed)
    }

    /// How often the overflow gate was asked.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Relaxed)
    }

    /// Takes what one value is asked for. A turn is one from `at_least` on.
    pub(super) fn take(
        &self,
        ask: &Ask<'_>,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Taken, Refused> {
        let home = &self.shards[shard_of(ask.hash)].0;
        {
            let shard = home.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(gate) = shard.gate(ask, now) {
                let now = shard.moment(now, reading);
                return ask.told(gate.take(ask.n, now, at_least, reading)).map(|part| taken(part, None));
            }
        }
        let mut shard = home.write().unwrap_or_else(PoisonError::into_inner);
        let now = shard.moment(now, reading);
        match self.place(&mut shard, ask, &[], &mut 0, now) {
            Place::Slot(place) => {
                let told = shard.slots[place].gate.take(ask.n, now, at_least, reading);
                ask.told(told).map(|part| taken(part, None))
            }
            Place::Overflow => self.take_from_overflow(ask, now, at_least, reading),
        }
    }

    /// Takes what several values, each named once, are asked for; all of it or nothing.
    ///
    /// Windows take nothing back, so the shards concerned are locked, in order, and all are asked before any is taken.
    /// The call starts when the last of its turns has come, and all are taken for that moment.
    pub(super) fn take_all(
        &self,
        asks: &[Ask<'_>],
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<(Option<Timestamp>, Vec<Held>), Refused> {
        let mut homes: Vec<_> = asks.iter().map(|ask| shard_of(ask.hash)).collect();
        homes.sort_unstable();
        homes.dedup();
        let mut shards: Vec<_> = homes
            .iter()
            .map(|home| self.shards[*home].0.write().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let shard_at = |ask: &Ask<'_>| homes.binary_search(&shard_of(ask.hash)).expect("it is one of them");
        let latest = |now: Timestamp, shard: &Shard| now.max(shard.moment(now, reading));
        let now = shards.iter().fold(now, |now, shard| latest(now, shard));
        // None of them may make room for another.
        let mut spared: Vec<_> = asks.iter().map(|ask| ask.hash).collect();
        spared.sort_unstable();
        let (mut n_shared, mut vain) = (0, 0);
        let in_overflow: Vec<bool> = asks
            .iter()
            .map(|ask| {
                let shard = &mut shards[shard_at(ask)];
                let is_shared = self.place(shard, ask, &spared, &mut vain, now) == Place::Overflow;
                n_shared = if is_shared { ask.n.saturating_add(n_shared) } else { n_shared };
                is_shared
            })
            .collect();

        let mut overflow = self.overflow.write().unwrap_or_else(PoisonError::into_inner);
        let first_shared = asks.iter().zip(&in_overflow).find(|(_, is_shared)| **is_shared);
        let overflow = first_shared.map(|(ask, _)| suiting(&mut overflow, ask, now));
        let own = |ask: &Ask<'_>| {
            let shard = &shards[shard_at(ask)];
            &shard.slots[shard.find(ask).expect("it was placed, and spared since")].gate
        };
        let peeked = asks
            .iter()
            .zip(&in_overflow)
            .filter(|(_, is_shared)| !**is_shared)
            .map(|(ask, _)| ask.told(own(ask).peek(ask.n, now, at_least, reading)))
            .chain(overflow.iter().map(|gate| {
                let peeked = gate.peek(n_shared, now, at_least, reading);
                peeked.map_err(|refused| refused.together(n_shared, true))
            }));
        let start = peeked.fold(Ok(None), both)?;
        // Only turns tell a later moment, and only turns are asked for by it.
        let now = start.unwrap_or(now);
        let mut all_held = vec![];
        // In one, as they were asked for: one by one, turns would be behind each other.
        if let Some(gate) = overflow {
            let new = asks.iter().zip(&in_overflow).filter(|(_, is_shared)| **is_shared);
            let hashes: Vec<_> = new.map(|(ask, _)| ask.hash).collect();
            all_held.extend(self.take_as_guests(gate, &hashes, n_shared, now, now, reading)?.1);
        }
        for (ask, _) in asks.iter().zip(&in_overflow).filter(|(_, is_shared)| !**is_shared) {
            let part = ask.told(own(ask).take(ask.n, now, now, reading))?;
            all_held.extend(taken(part, None).1);
        }
        Ok((start, all_held))
    }

    /// What values, each named once and in the order of their hashes, would be told: when to start, if not now. Takes
    /// nothing, and makes nobody a place.
    ///
    /// Unless others come in between, it is what [`take`](Self::take) and [`take_all`](Self::take_all) say.
    pub(super) fn peek(
        &self,
        asks: &[Ask<'_>],
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Option<Timestamp>, Refused> {
        let mut search = Search::new(self, asks);
        let (mut told, mut n_shared, mut first_shared) = (Ok(None), 0_u64, None);
        for ask in asks {
            let shard = self.shards[shard_of(ask.hash)].0.read().unwrap_or_else(PoisonError::into_inner);
            let moment = shard.moment(now, reading);
            let one = if let Some(gate) = shard.gate(ask, now) {
                ask.told(gate.peek(ask.n, moment, at_least, reading))
            } else if let Some(place) = shard.find(ask) {
                // It will be converted when it is next taken from.
                let gate = shard.slots[place].gate.converted(ask.limits, ask.generation, moment);
                ask.told(gate.peek(ask.n, moment, at_least, reading))
            } else {
                drop(shard);
                if search.finds_place(ask, asks, moment) {
                    ask.told(self.new_gate(ask, moment).peek(ask.n, moment, at_least, reading))
                } else {
                    n_shared = n_shared.saturating_add(ask.n);
                    first_shared.get_or_insert((ask, moment));
                    continue;
                }
            };
            told = both(told, one);
        }
        let Some((ask, moment)) = first_shared else { return told };
        let overflow = self.overflow.read().unwrap_or_else(PoisonError::into_inner);
        let shared = match &*overflow {
            Some(gate) if gate.suits(ask.limits, ask.generation, moment) => {
                gate.peek(n_shared, moment, at_least, reading)
            }
            Some(gate) => {
                let gate = gate.converted(ask.limits, ask.generation, moment);
                gate.peek(n_shared, moment, at_least, reading)
            }
            None => Gate::new(ask.limits, ask.generation, moment).peek(n_shared, moment, at_least, reading),
        };
        both(told, shared.map_err(|refused| refused.together(n_shared, true)))
    }

    /// Has later searches go on behind what one for these values looks at in vain: for a call that is refused, and so
    /// makes no search of its own.
    #[cold]
    pub(super) fn look_further(&self, asks: &[Ask<'_>], now: Timestamp) {
        let mut search = Search::new(self, asks);
        let is_new = |ask: &&Ask<'_>| {
            let shard = self.shards[shard_of(ask.hash)].0.read().unwrap_or_else(PoisonError::into_inner);
            shard.find(ask).is_none()
        };
        if asks.iter().filter(is_new).all(|ask| search.finds_place(ask, asks, now)) {
            return;
        }
        for (shard, passed) in self.shards.iter().zip(search.passed) {
            if passed > 0
                && let Ok(shard) = shard.0.try_read()
            {
                shard.hand.store(shard.nth_place(passed), Relaxed);
            }
        }
    }

    /// The gate that a value would get in a place of its own.
    fn new_gate(&self, ask: &Ask<'_>, now: Timestamp) -> Gate {
        let overflow = self.overflow.read().unwrap_or_else(PoisonError::into_inner);
        match &*overflow {
            Some(gate) if !ask.is_exception && !gate.is_at_rest(now) => {
                gate.split(ask.limits, ask.generation, now)
            }
            _ => Gate::new(ask.limits, ask.generation, now),
        }
    }

    /// Where to count a value; makes it a gate if there is room, and makes its gate suit its limits.
    /// `vain` counts the searches of one call that were.
    fn place(
        &self,
        shard: &mut Shard,
        ask: &Ask<'_>,
        spared: &[u64],
        vain: &mut u32,
        now: Timestamp,
    ) -> Place {
        if let Some(place) = shard.find(ask) {
            let gate = &mut shard.slots[place].gate;
            if !gate.suits(ask.limits, ask.generation, now) {
                gate.adopt(ask.limits, ask.generation, now);
            }
            return Place::Slot(place);
        }
        if ask.is_exception {
            self.n_keys.fetch_add(1, Relaxed);
        } else if *vain >= VAIN_AT_MOST || self.is_guest(ask.hash) {
            return Place::Overflow;
        } else if !self.make_room(shard, ask, spared, now) {
            *vain += 1;
            return Place::Overflow;
        }
        let overflow = self.overflow.read().unwrap_or_else(PoisonError::into_inner);
        let gate = match &*overflow {
            Some(gate) if !ask.is_exception && !gate.is_at_rest(now) => {
                drop(overflow);
                // To have it for itself: what is being written there has to be complete.
                let overflow = self.overflow.write().unwrap_or_else(PoisonError::into_inner);
                let gate = overflow.as_ref().expect("it is never taken away");
                gate.split(ask.limits, ask.generation, now)
            }
            _ => Gate::new(ask.limits, ask.generation, now),
        };
        Place::Slot(shard.insert(ask, gate))
    }

    fn is_guest(&self, hash: u64) -> bool {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash)
    }

    /// Reserves a place for one more value.
    fn make_room(&self, shard: &mut Shard, ask: &Ask<'_>, spared: &[u64], now: Timestamp) -> bool {
        // Relaxed: only a number.
        let reserve = |n_keys: u32| (n_keys < ask.max_keys).then_some(n_keys + 1);
        let is_reserved = || self.n_keys.fetch_update(Relaxed, Relaxed, reserve).is_ok();
        // Two are taken away for one, so that a table whose cap was lowered shrinks.
        is_reserved() || (0..2).any(|_| self.evict(shard, shard_of(ask.hash), spared, now) && is_reserved())
    }

    /// Takes a gate at rest away, if one is found among the next few: first here, then in the shards that nobody uses.
    fn evict(&self, shard: &mut Shard, home: usize, spared: &[u64], now: Timestamp) -> bool {
        let mut budget = SCAN;
        let mut found = shard.evict(&mut budget, spared, now);
        for distance in 1..N_SHARDS {
            if found || budget == 0 {
                break;
            }
            // Not waited for: it may be waiting for this one.
            let mut other = match self.shards[(home + distance) % N_SHARDS].0.try_write() {
                Ok(other) => other,
                Err(TryLockError::Poisoned(other)) => other.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            found = other.evict(&mut budget, spared, now);
        }
        if found {
            self.n_keys.fetch_sub(1, Relaxed);
        }
        found
    }

    /// The caller has the value's shard for itself.
    #[cold]
    fn take_from_overflow(
        &self,
        ask: &Ask<'_>,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Taken, Refused> {
        {
            let overflow = self.overflow.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(gate) = &*overflow
                && gate.suits(ask.limits, ask.generation, now)
            {
                return self.take_as_guests(gate, &[ask.hash], ask.n, now, at_least, reading);
            }
        }
        let mut overflow = self.overflow.write().unwrap_or_else(PoisonError::into_inner);
        let gate = suiting(&mut overflow, ask, now);
        self.take_as_guests(gate, &[ask.hash], ask.n, now, at_least, reading)
    }

    /// Takes `n` permits for all values of `hashes` together.
    fn take_as_guests(
        &self,
        gate: &Gate,
        hashes: &[u64],
        n: u64,
        now: Timestamp,
        at_least: Timestamp,
        reading: &Reading<'_>,
    ) -> Result<Taken, Refused> {
        self.overflowed.fetch_add(hashes.len() as u64, Relaxed);
        let part = gate.take(n, now, at_least, reading).map_err(|refused| refused.together(n, true))?;
        let guests = part.permits.is_some().then(|| {
            self.guests.lock().unwrap_or_else(PoisonError::into_inner).extend(hashes);
            Guests { all: Arc::clone(&self.guests), hashes: hashes.into() }
        });
        Ok(taken(part, guests))
    }

    /// The permits in flight of one value that has a gate, for tests.
    #[cfg(test)]
    pub(super) fn in_flight(&self, key: &Key, hash: u64) -> Option<u32> {
        let shard = self.shards[shard_of(hash)].0.read().unwrap_or_else(PoisonError::into_inner);
        shard.slots.iter().find(|slot| slot.key == *key).map(|slot| slot.gate.in_flight())
    }

    /// The permits in flight of the overflow gate, and its guests, for tests.
    #[cfg(test)]
    pub(super) fn in_overflow(&self) -> (u32, usize) {
        let gate = self.overflow.read().unwrap_or_else(PoisonError::into_inner);
        let guests = self.guests.lock().unwrap_or_else(PoisonError::into_inner).len();
        (gate.as_ref().map_or(0, Gate::in_flight), guests)
    }
}

/// The overflow gate, made to suit the limits that values without limits of their own have.
fn suiting<'a>(overflow: &'a mut Option<Gate>, ask: &Ask<'_>, now: Timestamp) -> &'a Gate {
    let gate = overflow.get_or_insert_with(|| Gate::new(ask.limits, ask.generation, now));
    if !gate.suits(ask.limits, ask.generation, now) {
        gate.adopt(ask.limits, ask.generation, now);
    }
    gate
}

impl Shard {
    #[inline]
    fn find(&self, ask: &Ask<'_>) -> Option<usize> {
        let is_it = |place: &u32| {
            let slot = &self.slots[*place as usize];
            slot.hash == ask.hash && slot.key == *ask.key
        };
        self.index.find(ask.hash, is_it).map(|place| *place as usize)
    }

    /// The gate of a value, if it can be asked as it is.
    #[inline]
    fn gate(&self, ask: &Ask<'_>, now: Timestamp) -> Option<&Gate> {
        let gate = &self.slots[self.find(ask)?].gate;
        gate.suits(ask.limits, ask.generation, now).then_some(gate)
    }

    /// The reading to decide by: a new one if a gate was taken away by a later one.
    #[inline]
    fn moment(&self, now: Timestamp, reading: &Reading<'_>) -> Timestamp {
        if now < self.swept_at { reading().max(self.swept_at) } else { now }
    }

    fn insert(&mut self, ask: &Ask<'_>, gate: Gate) -> usize {
        let place = self.slots.len();
        self.slots.push(Slot { hash: ask.hash, key: ask.key.clone(), gate });
        let slots = &self.slots;
        let number = u32::try_from(place).expect("at most a million values and their exceptions");
        self.index.insert_unique(ask.hash, number, |place| slots[*place as usize].hash);
        place
    }

    fn evict(&mut self, budget: &mut usize, spared: &[u64], now: Timestamp) -> bool {
        for _ in 0..self.slots.len().min(*budget) {
            *budget -= 1;
            let hand = self.nth_place(0);
            let slot = &self.slots[hand];
            if slot.gate.is_at_rest(now) && spared.binary_search(&slot.hash).is_err() {
                *self.hand.get_mut() = hand;
                self.remove(hand);
                self.swept_at = self.swept_at.max(now);
                return true;
            }
            *self.hand.get_mut() = hand + 1;
        }
        false
    }

    /// The place that a search comes to after `passed` others.
    fn nth_place(&self, passed: usize) -> usize {
        let hand = self.hand.load(Relaxed);
        let hand = if hand < self.slots.len() { hand } else { 0 };
        (hand + passed) % self.slots.len().max(1)
    }

    /// Takes a slot away; the last one takes its place.
    fn remove(&mut self, place: usize) {
        let (last, hash) = (self.slots.len() - 1, self.slots[place].hash);
        let is_at = |wanted: usize| move |place: &u32| *place as usize == wanted;
        if let Ok(entry) = self.index.find_entry(hash, is_at(place)) {
            entry.remove();
        }
        if let Some(moved) = self.index.find_mut(self.slots[last].hash, is_at(last)) {
            *moved = u32::try_from(place).expect("a place before one that fits");
        }
        self.slots.swap_remove(place);
    }
}

/// What the search for places of one call would find, without taking any gate away.
struct Search<'a> {
    table: &'a Table,
    n_keys: u32,
    /// How many searches were in vain.
    vain: u32,
    /// The shards, as bits, that the call will have locked: it takes nothing away there, but for values of the same shard.
    homes: u32,
    /// How many slots of each shard it has gone past.
    passed: [usize; N_SHARDS],
    /// The gates that would be taken away: their shards and slots.
    victims: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(table: &'a Table, asks: &[Ask<'_>]) -> Self {
        let homes = asks.iter().fold(0, |homes, ask| homes | 1 << shard_of(ask.hash));
        Self { table, n_keys: table.n_keys(), vain: 0, homes, passed: [0; N_SHARDS], victims: vec![] }
    }

    /// Whether a value that has no gate would get one, as by [`Table::place`]. None of `spared`, which are in the order of
    /// their hashes, makes room for it.
    fn finds_place(&mut self, ask: &Ask<'_>, spared: &[Ask<'_>], now: Timestamp) -> bool {
        if ask.is_exception {
            self.n_keys = self.n_keys.saturating_add(1);
            return true;
        }
        if self.vain >= VAIN_AT_MOST || self.table.is_guest(ask.hash) {
            return false;
        }
        let is_found = self.reserve(ask)
            || (0..2).any(|_| self.evict(shard_of(ask.hash), spared, now) && self.reserve(ask));
        self.vain += u32::from(!is_found);
        is_found
    }

    fn reserve(&mut self, ask: &Ask<'_>) -> bool {
        let has_room = self.n_keys < ask.max_keys;
        self.n_keys += u32::from(has_room);
        has_room
    }

    fn evict(&mut self, home: usize, spared: &[Ask<'_>], now: Timestamp) -> bool {
        let mut budget = SCAN;
        for distance in 0..N_SHARDS {
            let at = (home + distance) % N_SHARDS;
            if distance > 0 && self.homes & (1 << at) != 0 {
                continue;
            }
            let shard = match self.table.shards[at].0.try_read() {
                Ok(shard) => shard,
                Err(TryLockError::Poisoned(shard)) => shard.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            for _ in 0..shard.slots.len().min(budget) {
                budget -= 1;
                let place = shard.nth_place(self.passed[at]);
                let slot = &shard.slots[place];
                if slot.gate.is_at_rest(now)
                    && spared.binary_search_by_key(&slot.hash, |ask| ask.hash).is_err()
                    && !self.victims.contains(&(at, place))
                {
                    self.victims.push((at, place));
                    self.n_keys -= 1;
                    return true;
                }
                self.passed[at] += 1;
            }
        }
        false
    }
}

/// What a call is told that asks two gates.
fn both(
    one: Result<Option<Timestamp>, Refused>,
    other: Result<Option<Timestamp>, Refused>,
) -> Result<Option<Timestamp>, Refused> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.max(other)),
        (Err(one), Err(other)) => Err(one.and(other)),
        (Err(refused), Ok(_)) | (Ok(_), Err(refused)) => Err(refused),
    }
}

/// By other bits of the hash than those that the index goes by.
#[inline]
fn shard_of(hash: u64) -> usize {
    (hash >> 32) as usize % N_SHARDS
}
