//! The window of the last calls, however long ago they ended.

use super::sample::Sample;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The outcomes of the last `n` calls, and how many of them were bad.
///
/// What counts is one word, changed by one compare-exchange per result, so that every verdict is one on exactly the
/// last calls, in the order in which they changed it. An outcome has to be found again a lap later, when its place is
/// taken, so it stands in a slot too; but a word and a slot cannot be written at once, and whoever has changed the word
/// may be held up. So the word carries the newest outcome itself, and whoever comes next puts that into its slot first:
/// every result but the newest is in its slot whenever a word is there to be seen.
///
/// ```text
///  63         29 28    15 14    1     0
/// | position    | calls  | bad   | newest |   position: of the next result, modulo a multiple of `n`
///  slot position % n
/// | end of its position 31 | bad 1 |
/// ```
///
/// `calls` counts from the last [`forget`](Self::forget) up to `n`; only when there are `n` does one leave.
#[derive(Debug)]
pub(super) struct LastCalls {
    word: AtomicU64,
    slots: Box<[AtomicU32]>,
    /// Where positions begin again: a multiple of `n` somewhat under 2³⁵.
    end: u64,
}

const POSITION: u32 = 29;
const CALLS: u32 = 15;
const BAD: u32 = 1;
const COUNT: u64 = (1 << (POSITION - CALLS)) - 1;

/// What the word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counted {
    position: u64,
    calls: u32,
    bad: u32,
    newest: bool,
}

impl Counted {
    const fn pack(self) -> u64 {
        self.position << POSITION
            | (self.calls as u64) << CALLS
            | (self.bad as u64) << BAD
            | self.newest as u64
    }

    const fn unpack(word: u64) -> Self {
        let (calls, bad) = ((word >> CALLS & COUNT) as u32, (word >> BAD & COUNT) as u32);
        Self { position: word >> POSITION, calls, bad, newest: word & 1 == 1 }
    }
}

impl LastCalls {
    pub(super) fn new(n: u32) -> Self {
        let end = (1 << (u64::BITS - POSITION)) / u64::from(n) * u64::from(n);
        // As if a lap of good results had gone by.
        let slots = (0..u64::from(n)).map(|i| AtomicU32::new(slot(end - u64::from(n) + i, false))).collect();
        let word = AtomicU64::new(Counted { position: 0, calls: 0, bad: 0, newest: false }.pack());
        Self { word, slots, end }
    }

    /// Counts a result and tells what the window holds with it.
    pub(super) fn add(&self, bad: bool) -> Sample {
        // Acquire: the slots of all results but the newest were written, or seen written, before the word was changed.
        let mut seen = self.word.load(Ordering::Acquire);
        loop {
            let counted = Counted::unpack(seen);
            self.put_away(self.before(counted.position, 1), counted.newest);
            let is_full = counted.calls as usize == self.slots.len();
            let leaves = is_full && self.at(counted.position).load(Ordering::Relaxed) & 1 == 1;
            let next = Counted {
                position: (counted.position + 1) % self.end,
                calls: counted.calls + u32::from(!is_full),
                // Saturating, for one who read the slot of a word that stands no longer: his change fails below.
                bad: counted.bad.saturating_sub(leaves.into()) + u32::from(bad),
                newest: bad,
            };
            // Release: see the load. A word comes back only after 2³⁵ results.
            match self.word.compare_exchange(seen, next.pack(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Sample { calls: next.calls, bad: next.bad },
                Err(found) => seen = found,
            }
        }
    }

    /// Writes the outcome of `position` into its slot, unless somebody has.
    fn put_away(&self, position: u64, bad: bool) {
        let (slot_before, slot_now) = (slot(self.before(position, self.n()), false), slot(position, bad));
        let cell = self.at(position);
        // Relaxed: the slot is changed from its last lap's value to this one's and by nobody else, so whoever read either
        // reads that or a later one from then on; and to others the word's change publishes it.
        let seen = cell.load(Ordering::Relaxed);
        // The last lap's, whatever its outcome. Anything else is this lap's, or a later one, if we have been held up.
        if seen | 1 == slot_before | 1 {
            // If that fails, somebody else has put it away.
            let _ = cell.compare_exchange(seen, slot_now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    pub(super) fn sample(&self) -> Sample {
        // Acquire: see `mark`.
        let Counted { calls, bad, .. } = Counted::unpack(self.word.load(Ordering::Acquire));
        Sample { calls, bad }
    }

    /// What [`forget`](Self::forget) is to replace: to be read before the state that is about to close.
    pub(super) fn mark(&self) -> u64 {
        // Acquire: who sees a result of a call that a closing let through also sees that closing, looking afterwards.
        self.word.load(Ordering::Acquire)
    }

    /// Lets nothing before play a part, unless anything was counted, or forgotten, since `mark`.
    pub(super) fn forget(&self, mark: u64) -> bool {
        let next = Counted { calls: 0, bad: 0, ..Counted::unpack(mark) }.pack();
        // AcqRel: as any change of the word, it passes on what the last one published.
        self.word.compare_exchange(mark, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn at(&self, position: u64) -> &AtomicU32 {
        &self.slots[usize::try_from(position % self.n()).expect("under the number of slots")]
    }

    fn before(&self, position: u64, n: u64) -> u64 {
        if position >= n { position - n } else { position + self.end - n }
    }

    fn n(&self) -> u64 {
        self.slots.len() as u64
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the end of it tells laps apart")]
fn slot(position: u64, bad: bool) -> u32 {
    (position as u32) << 1 | u32::from(bad)
}

#[cfg(all(test, leap_loom))]
mod models;

#[cfg(all(test, not(any(leap_loom, leap_shuttle))))]
mod tests {
    use std::sync::Barrier;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_window_holds_what_a_plain_list_of_the_last_calls_does(
            n in 1..20_u32,
            start in prop_oneof![Just(0), 0..100_u64],
            acts in prop::collection::vec(prop_oneof![1 => Just(None), 20 => any::<bool>().prop_map(Some)], 1..200),
        ) {
            let window = LastCalls::new(n);
            // Anywhere, also shortly before positions begin again.
            let position = (window.end - start % window.end) % window.end;
            for (back, cell) in (1..=u64::from(n)).map(|back| (back, window.at(window.before(position, back)))) {
                cell.store(slot(window.before(position, back), false), Ordering::Relaxed);
            }
            window.word.store(Counted { position, calls: 0, bad: 0, newest: false }.pack(), Ordering::Relaxed);
            let mut list: Vec<bool> = vec![];
            for act in acts {
                match act {
                    Some(bad) => {
                        list.push(bad);
                        let last = &list[list.len().saturating_sub(n as usize)..];
                        let bad_calls = last.iter().map(|bad| u32::from(*bad)).sum();
                        let expected = Sample { calls: u32::try_from(last.len()).unwrap(), bad: bad_calls };
                        prop_assert_eq!(window.add(bad), expected);
                        prop_assert_eq!(window.sample(), expected);
                    }
                    None => {
                        prop_assert!(window.forget(window.mark()));
                        list.clear();
                        prop_assert_eq!(window.sample(), Sample::default());
                    }
                }
            }
        }
    }

    #[test]
    fn a_result_since_the_mark_is_not_forgotten() {
        let window = LastCalls::new(2);
        let mark = window.mark();
        window.add(true);
        assert!(!window.forget(mark));
        assert_eq!(window.sample(), Sample { calls: 1, bad: 1 });
    }

    #[test]
    fn threads_at_once_leave_a_window_of_exactly_the_last_calls() {
        for n in [1, 2, 3, 7, 100] {
            let window = LastCalls::new(n);
            let start = Barrier::new(4);
            std::thread::scope(|scope| {
                for thread in 0..4_u32 {
                    let (window, start) = (&window, &start);
                    scope.spawn(move || {
                        start.wait();
                        for call in 0..20_000 {
                            let sample = window.add((call + thread) % 3 == 0);
                            assert!(sample.bad <= sample.calls && sample.calls <= n, "{sample:?}");
                        }
                    });
                }
            });
            // One more lap of known results: nothing of before may be left.
            for i in 1..=n {
                let sample = window.add(true);
                assert!(sample.bad >= i && sample.calls == n, "{sample:?}");
            }
            assert_eq!(window.sample(), Sample { calls: n, bad: n });
        }
    }
}
