//! The breaker under every schedule of two or three threads: it moves along its states only, once for each reason,
//! lets as many probes through as it should, and no result of another time moves it.

use std::sync::{Arc as StdArc, Mutex as StdMutex};

use loom::model::Builder;
use loom::thread;

use super::*;
use crate::rule::BreakerState::{Closed, ForcedClosed, ForcedOpen, HalfOpen, Open};
use crate::rule::RuleKind;

/// When an opened breaker may be probed, in ms after it opened.
const OPEN_MS: u64 = 5_000;

/// When the breakers of [`World::opened`] may be probed.
const PROBE_MS: u64 = 100 + OPEN_MS;

const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

const fn state(phase: Phase, free: u16, needed: u16, generation: u64) -> State {
    State { phase, doublings: 0, free, needed, generation }
}

/// A breaker, and what its callers were told.
#[derive(Clone)]
struct World {
    breaker: StdArc<Breaker>,
    log: StdArc<StdMutex<Vec<(BreakerState, BreakerState)>>>,
}

impl World {
    /// A closed breaker that two exceptions of two calls open.
    fn closed(probes: u32) -> Self {
        let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(2).unwrap();
        Self::of(rule.with_probes(probes).unwrap())
    }

    fn of(rule: BreakerRule) -> Self {
        let breaker = Breaker::new(RuleId::new(None, RuleKind::ErrorRatio, 0), rule, None, at(0));
        Self { breaker: StdArc::new(breaker), log: StdArc::default() }
    }

    /// One that opened at 100 ms.
    fn opened(probes: u32) -> Self {
        let world = Self::closed(probes);
        let calls = [(); 2].map(|()| world.enter(100).unwrap());
        calls.into_iter().for_each(|generation| world.end(generation, true, 100));
        assert_eq!(world.shown(), Open);
        world
    }

    /// One that opened at 100 ms, and whose probe is out since then. Returns its generation.
    fn half_open(probes: u32) -> (Self, u64) {
        let world = Self::opened(probes);
        let probe = world.enter(PROBE_MS).unwrap();
        (world, probe)
    }

    /// The generation of the call, if it is let through.
    fn enter(&self, ms: u64) -> Option<u64> {
        let (generation, moved) = self.breaker.enter(at(ms)).ok()?;
        self.note(moved);
        Some(generation)
    }

    fn end(&self, generation: u64, exception: bool, ms: u64) {
        self.note(self.breaker.end(generation, 0, exception, at(ms)));
    }

    fn state(&self) -> State {
        self.breaker.live.word.load()
    }

    fn shown(&self) -> BreakerState {
        self.breaker.state()
    }

    fn sample(&self, ms: u64) -> (u32, u32) {
        let sample = self.breaker.figures(at(ms)).sample;
        (sample.calls, sample.bad)
    }

    /// Runs `body` on threads of its own, and returns what each made.
    fn on_threads<T: 'static, const N: usize>(&self, bodies: [fn(&World) -> T; N]) -> [T; N] {
        let threads = bodies.map(|body| {
            let world = self.clone();
            thread::spawn(move || body(&world))
        });
        threads.map(|thread| thread.join().unwrap())
    }

    fn n_moves(&self, from: BreakerState, to: BreakerState) -> usize {
        self.log.lock().unwrap().iter().filter(|moved| **moved == (from, to)).count()
    }

    fn note(&self, moved: Option<Moved>) {
        self.log.lock().unwrap().extend(moved.map(|moved| (moved.from, moved.to)));
    }

    /// What was told is one path from closed to where the breaker stands, whatever the order in which it was told.
    fn assert_path(&self) {
        let log = self.log.lock().unwrap();
        let legal = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed), (HalfOpen, Open)];
        assert!(log.iter().all(|moved| legal.contains(moved)), "{log:?}");
        drop(log);
        self.assert_walk();
    }

    /// As [`assert_path`](Self::assert_path), where a hand may have moved it anywhere.
    fn assert_walk(&self) {
        let log = self.log.lock().unwrap();
        let now = self.shown();
        for state in [Closed, Open, HalfOpen, ForcedOpen, ForcedClosed] {
            let entered = log.iter().filter(|(_, to)| *to == state).count() + usize::from(state == Closed);
            let left = log.iter().filter(|(from, _)| *from == state).count() + usize::from(state == now);
            assert_eq!(entered, left, "no path to {now:?}: {log:?}");
        }
    }
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

#[test]
fn two_bad_results_at_once_open_it_once() {
    check(3, || {
        let world = World::closed(1);
        world.on_threads(
            [|world: &World| {
                let generation = world.enter(100).unwrap();
                world.end(generation, true, 100);
            }; 2],
        );
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open)], "once, and no verdict is skipped");
        assert_eq!(world.state(), state(Phase::Open, 0, 0, 1));
    });
}

#[test]
fn more_bad_results_than_needed_open_it_once() {
    check(2, || {
        let world = World::closed(1);
        let first = world.enter(90).unwrap();
        world.end(first, true, 90);
        world.on_threads(
            [|world: &World| {
                if let Some(generation) = world.enter(100) {
                    world.end(generation, true, 100);
                }
            }; 3],
        );
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open)]);
        assert_eq!(world.enter(PROBE_MS - 1), None, "open for its whole time");
    });
}

#[test]
fn of_a_good_and_a_bad_result_at_once_the_last_one_judges_both() {
    check(3, || {
        let rule = BreakerRule::error_ratio(0.4).unwrap().with_min_calls(2).unwrap();
        let world = World::of(rule);
        let bodies: [fn(&World); 2] = [
            |world| {
                let generation = world.enter(90).unwrap();
                world.end(generation, true, 100);
            },
            |world| {
                let generation = world.enter(90).unwrap();
                world.end(generation, false, 100);
            },
        ];
        world.on_threads(bodies);
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open)]);
    });
}

#[test]
fn a_verdict_is_not_skipped_while_the_window_turns() {
    check(3, || {
        let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(2).unwrap();
        let world = World::of(rule.with_window(Duration::from_millis(200), 2).unwrap());
        let bodies: [fn(&World); 2] = [
            |world| {
                let generation = world.enter(90).unwrap();
                world.end(generation, true, 99);
            },
            |world| {
                let generation = world.enter(90).unwrap();
                world.end(generation, true, 100);
            },
        ];
        world.on_threads(bodies);
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open)]);
    });
}

#[test]
fn only_one_of_two_calls_becomes_the_probe() {
    check(3, || {
        let world = World::opened(1);
        let probes = world.on_threads([|world: &World| world.enter(PROBE_MS); 2]);
        assert_eq!(probes.iter().flatten().count(), 1);
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open), (Open, HalfOpen)]);
        world.end(*probes.iter().flatten().next().unwrap(), false, PROBE_MS + 1);
        assert_eq!(world.shown(), Closed);
        world.assert_path();
    });
}

#[test]
fn only_one_of_three_calls_becomes_the_probe() {
    check(2, || {
        let world = World::opened(1);
        let probes = world.on_threads([|world: &World| world.enter(PROBE_MS); 3]);
        assert_eq!(probes.iter().flatten().count(), 1);
        world.assert_path();
    });
}

#[test]
fn a_probe_too_early_is_none() {
    check(3, || {
        let world = World::opened(1);
        let bodies: [fn(&World) -> Option<u64>; 2] =
            [|world| world.enter(PROBE_MS - 1), |world| world.enter(PROBE_MS)];
        let [early, late] = world.on_threads(bodies);
        assert_eq!((early, late), (None, Some(2)));
        world.assert_path();
    });
}

#[test]
fn exactly_two_of_three_calls_become_the_two_probes_and_close_it() {
    check(2, || {
        let world = World::opened(2);
        let probes = world.on_threads([|world: &World| world.enter(PROBE_MS); 3]);
        assert_eq!(probes.iter().flatten().count(), 2);
        assert_eq!(world.state(), state(Phase::Probing, 0, 2, 2));
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open), (Open, HalfOpen)]);
    });
}

#[test]
fn two_probes_that_succeed_at_once_close_it_once() {
    check(3, || {
        let world = World::opened(2);
        let ends = world.on_threads(
            [|world: &World| {
                let probe = world.enter(PROBE_MS).unwrap();
                world.end(probe, false, PROBE_MS + 1);
            }; 2],
        );
        assert_eq!(ends.len(), 2);
        assert_eq!(world.n_moves(HalfOpen, Closed), 1);
        assert_eq!(world.state(), state(Phase::Closed, 0, 0, 3));
        world.assert_path();
    });
}

#[test]
fn of_a_good_and_a_bad_probe_the_bad_one_decides() {
    check(3, || {
        let world = World::opened(2);
        let probes = [(); 2].map(|()| world.enter(PROBE_MS).unwrap());
        assert_eq!(probes, [2, 2]);
        let bodies: [fn(&World); 2] =
            [|world| world.end(2, false, PROBE_MS + 1), |world| world.end(2, true, PROBE_MS + 2)];
        world.on_threads(bodies);
        assert_eq!(world.state(), State { doublings: 1, ..state(Phase::Open, 0, 0, 3) });
        assert_eq!(world.enter(PROBE_MS + 2 + OPEN_MS - 1), None);
        world.assert_path();
    });
}

#[test]
fn a_probe_that_is_given_back_goes_to_one_new_caller() {
    check(3, || {
        let (world, probe) = World::half_open(1);
        assert_eq!(probe, 2);
        let bodies: [fn(&World) -> Option<u64>; 3] = [
            |world| {
                world.breaker.give_back(2);
                None
            },
            |world| world.enter(PROBE_MS + 1),
            |world| world.enter(PROBE_MS + 1),
        ];
        let probes = world.on_threads(bodies);
        let out = probes.iter().flatten().count();
        assert!(out <= 1, "{probes:?}");
        let free = u16::try_from(1 - out).unwrap();
        assert_eq!(world.state(), state(Phase::Probing, free, 1, 2));
        world.assert_path();
    });
}

#[test]
fn a_late_result_of_an_older_generation_moves_nothing() {
    check(2, || {
        let world = World::closed(1);
        let late = world.enter(100).unwrap();
        let calls = [(); 2].map(|()| world.enter(100).unwrap());
        calls.into_iter().for_each(|generation| world.end(generation, true, 100));
        assert_eq!(late, 0);
        let bodies: [fn(&World); 3] = [
            |world| world.end(0, true, PROBE_MS),
            |world| {
                if let Some(probe) = world.enter(PROBE_MS) {
                    assert_eq!(probe, 2);
                    world.end(probe, false, PROBE_MS + 1);
                }
            },
            |world| world.breaker.give_back(0),
        ];
        world.on_threads(bodies);
        assert_eq!(world.state(), state(Phase::Closed, 0, 0, 3));
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
        // What came before the closing plays no part: at most the late one.
        assert!([(0, 0), (1, 1)].contains(&world.sample(PROBE_MS + 1)), "{:?}", world.sample(PROBE_MS + 1));
    });
}

#[test]
fn a_stuck_probe_makes_room_for_exactly_one() {
    check(2, || {
        let (world, _) = World::half_open(1);
        let expired = PROBE_MS + OPEN_MS;
        assert_eq!(world.enter(expired - 1), None);
        let probes = world.on_threads([|world: &World| world.enter(PROBE_MS + OPEN_MS); 3]);
        assert_eq!(probes.iter().flatten().collect::<Vec<_>>(), [&3], "one, under a generation of its own");
        assert_eq!(world.breaker.figures(at(expired)).stuck_probes, 1);
        assert_eq!(world.enter(expired + OPEN_MS - 1), None, "it has a lease of its own");
        world.end(2, false, expired);
        assert_eq!(world.shown(), HalfOpen, "the one written off decides nothing");
        world.assert_path();
    });
}

#[test]
fn a_probe_that_ends_as_it_is_written_off_decides_or_does_not() {
    check(3, || {
        let (world, probe) = World::half_open(1);
        assert_eq!(probe, 2);
        let bodies: [fn(&World) -> Option<u64>; 2] = [
            |world| {
                world.end(2, true, PROBE_MS + OPEN_MS);
                None
            },
            |world| world.enter(PROBE_MS + OPEN_MS),
        ];
        let [_, second] = world.on_threads(bodies);
        match second {
            Some(generation) => assert_eq!((generation, world.state()), (3, state(Phase::Probing, 0, 1, 3))),
            None => assert_eq!(world.state(), State { doublings: 1, ..state(Phase::Open, 0, 0, 3) }),
        }
        world.assert_path();
    });
}

#[test]
fn results_after_the_closing_are_counted_from_it_on() {
    check(2, || {
        let (world, probe) = World::half_open(1);
        assert_eq!(probe, 2);
        let bodies: [fn(&World) -> u32; 2] = [
            |world| {
                world.end(2, false, PROBE_MS + 1);
                0
            },
            |world| {
                let Some(generation) = world.enter(PROBE_MS + 1) else { return 0 };
                assert_eq!(generation, 3, "nobody but the probe passes before it closed");
                world.end(generation, true, PROBE_MS + 1);
                1
            },
        ];
        let ended = world.on_threads(bodies).iter().sum::<u32>();
        assert_eq!(world.shown(), Closed, "one call is too few to open it again");
        assert_eq!(world.sample(PROBE_MS + 1), (ended, ended), "neither the trip nor the probe is in it");
        // And the next one that brings it to two opens it.
        let generation = world.enter(PROBE_MS + 2).unwrap();
        world.end(generation, true, PROBE_MS + 2);
        assert_eq!(world.shown(), if ended == 1 { Open } else { Closed });
        world.assert_path();
    });
}

#[test]
fn a_probe_that_was_written_off_forgets_nothing_that_came_after_its_successor() {
    check(3, || {
        let (world, probe) = World::half_open(1);
        assert_eq!(probe, 2);
        let bodies: [fn(&World); 2] = [
            |world| world.end(2, false, PROBE_MS + OPEN_MS),
            |world| {
                let now = PROBE_MS + OPEN_MS;
                let Some(generation) = world.enter(now) else { return };
                world.end(generation, false, now);
                if world.shown() == Closed && generation == 3 {
                    // Two bad calls after the closing have to open it again.
                    let calls = [(); 2].map(|()| world.enter(now).unwrap());
                    calls.into_iter().for_each(|generation| world.end(generation, true, now));
                    assert_eq!(world.shown(), Open, "a verdict was forgotten");
                }
            },
        ];
        world.on_threads(bodies);
        world.assert_path();
    });
}

// --- By hand ---

#[test]
fn forcing_races_a_probe_and_nothing_of_before_moves_it_afterwards() {
    check(2, || {
        let world = World::opened(1);
        let bodies: [fn(&World); 2] = [
            |world| {
                if let Some(probe) = world.enter(PROBE_MS) {
                    world.end(probe, true, PROBE_MS + 1);
                    world.breaker.give_back(probe);
                }
            },
            |world| world.note(world.breaker.force_closed()),
        ];
        world.on_threads(bodies);
        assert_eq!((world.shown(), world.state().doublings), (ForcedClosed, 0));
        let generation = world.enter(PROBE_MS + 1).expect("forced closed");
        (0..3).for_each(|_| world.end(generation, true, PROBE_MS + 2));
        assert_eq!(world.shown(), ForcedClosed);
        world.assert_walk();
    });
}

#[test]
fn no_probe_passes_once_it_is_forced_open() {
    check(3, || {
        let world = World::opened(1);
        let bodies: [fn(&World) -> Option<u64>; 2] = [
            |world| world.enter(PROBE_MS),
            |world| {
                world.note(world.breaker.force_open());
                assert_eq!(world.enter(PROBE_MS), None);
                None
            },
        ];
        let [probe, _] = world.on_threads(bodies);
        if let Some(probe) = probe {
            world.end(probe, false, PROBE_MS + 1);
        }
        assert_eq!(world.shown(), ForcedOpen);
        assert_eq!(world.enter(PROBE_MS + 10 * OPEN_MS), None);
        world.assert_walk();
    });
}

#[test]
fn two_hands_at_once_leave_it_where_one_of_them_put_it() {
    check(3, || {
        let world = World::closed(1);
        let bodies: [fn(&World); 2] = [
            |world| world.note(world.breaker.force_open()),
            |world| world.note(world.breaker.force_closed()),
        ];
        world.on_threads(bodies);
        assert!([ForcedOpen, ForcedClosed].contains(&world.shown()));
        assert_eq!(world.log.lock().unwrap().len(), 2);
        world.assert_walk();
    });
}

/// Of a reset at a moment of its own choice: after it, neither the results before it count, nor do later ones get lost.
fn reset_beside_a_result(rule: BreakerRule) {
    check(2, move || {
        let world = World::of(rule);
        let old = world.enter(90).unwrap();
        world.end(old, true, 90);
        let bodies: [fn(&World); 2] = [
            |world| world.end(0, true, 100),
            |world| {
                world.note(world.breaker.reset(at(100)));
                // Two bad calls after the reset have to open it.
                let calls = [(); 2].map(|()| world.enter(100).expect("reset"));
                calls.into_iter().for_each(|generation| world.end(generation, true, 100));
                assert_eq!(world.shown(), Open, "a verdict was forgotten");
            },
        ];
        world.on_threads(bodies);
        assert_eq!(world.shown(), Open);
        world.assert_walk();
    });
}

#[test]
fn a_reset_beside_a_result_loses_none_that_comes_after_it() {
    let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(2).unwrap();
    reset_beside_a_result(rule);
    reset_beside_a_result(rule.with_window_calls(3).unwrap());
}

#[test]
fn a_reset_beside_a_closing_probe_loses_nothing_that_comes_after_both() {
    for calls in [None, Some(3)] {
        check(2, move || {
            let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(2).unwrap();
            let rule = calls.map_or(rule, |calls| rule.with_window_calls(calls).unwrap());
            let world = World::of(rule);
            let calls = [(); 2].map(|()| world.enter(100).unwrap());
            calls.into_iter().for_each(|generation| world.end(generation, true, 100));
            assert_eq!(world.enter(PROBE_MS), Some(2));
            let bodies: [fn(&World); 2] = [
                |world| world.end(2, false, PROBE_MS),
                |world| {
                    world.note(world.breaker.reset(at(PROBE_MS)));
                    let calls = [(); 2].map(|()| world.enter(PROBE_MS).expect("reset"));
                    calls.into_iter().for_each(|generation| world.end(generation, true, PROBE_MS));
                    assert_eq!(world.shown(), Open, "a verdict was forgotten");
                },
            ];
            world.on_threads(bodies);
            world.assert_walk();
        });
    }
}

#[test]
fn two_resets_beside_a_probe_lose_nothing_that_comes_after_them() {
    check(2, || {
        let (world, probe) = World::half_open(1);
        assert_eq!(probe, 2);
        let bodies: [fn(&World); 2] = [
            |world| world.end(2, false, PROBE_MS),
            |world| {
                (0..2).for_each(|_| _ = world.breaker.reset(at(PROBE_MS)));
                let generation = world.enter(PROBE_MS).expect("reset");
                world.end(generation, true, PROBE_MS);
            },
        ];
        world.on_threads(bodies);
        let (calls, bad) = world.sample(PROBE_MS);
        assert!(calls <= 2 && bad == 1, "{bad} bad of {calls}: the result after the resets was forgotten");
    });
}

// --- The ramp ---

/// How long the ramp of [`World::ramping`] takes.
const RAMP_MS: u64 = 1_000;

impl World {
    /// One whose ramp began at [`PROBE_MS`], under generation 3. Two bad calls of the ramp open it again.
    fn ramping(min_calls: u32) -> Self {
        let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(min_calls).unwrap();
        let over = Duration::from_millis(RAMP_MS);
        let world = Self::of(rule.with_recovery(Recovery::Ramp { over }).unwrap());
        let calls: Vec<u64> = (0..min_calls).map(|_| world.enter(100).unwrap()).collect();
        calls.into_iter().for_each(|generation| world.end(generation, true, 100));
        let probe = world.enter(PROBE_MS).unwrap();
        world.end(probe, false, PROBE_MS);
        assert_eq!(world.state(), state(Phase::Ramping, 0, 0, 3));
        world
    }
}

#[test]
fn of_calls_that_come_at_once_the_share_passes_exactly() {
    check(2, || {
        let world = World::ramping(2);
        let passed = world.on_threads(
            [|world: &World| (0..2).filter(|_| world.enter(PROBE_MS + RAMP_MS / 2).is_some()).count(); 2],
        );
        assert_eq!(passed.iter().sum::<usize>(), 2, "of 4, at 50 %");
        world.assert_path();
    });
}

#[test]
fn the_results_of_a_ramp_are_judged_together_whoever_brings_them() {
    check(2, || {
        let world = World::ramping(2);
        let bodies: [fn(&World); 3] = [
            |world| world.end(3, true, PROBE_MS + 10),
            |world| world.end(3, true, PROBE_MS + 10),
            // It changes the word under them.
            |world| _ = world.enter(PROBE_MS + 10),
        ];
        world.on_threads(bodies);
        assert_eq!(world.n_moves(HalfOpen, Open), 1);
        assert_eq!(world.state(), State { doublings: 1, ..state(Phase::Open, 0, 0, 4) });
        assert_eq!(world.enter(PROBE_MS + 10 + OPEN_MS - 1), None);
        world.assert_path();
    });
}

#[test]
fn results_at_the_end_of_a_ramp_close_it_once_and_lose_nothing_that_comes_after() {
    check(2, || {
        let world = World::ramping(2);
        let bodies: [fn(&World); 2] = [
            |world| world.end(3, false, PROBE_MS + RAMP_MS),
            |world| {
                let now = PROBE_MS + RAMP_MS;
                world.end(3, false, now);
                assert_eq!(world.shown(), Closed);
                let calls = [(); 2].map(|()| world.enter(now).expect("closed"));
                calls.into_iter().for_each(|generation| world.end(generation, true, now));
                assert_eq!(world.shown(), Open, "a verdict was forgotten");
            },
        ];
        world.on_threads(bodies);
        assert_eq!(world.n_moves(HalfOpen, Closed), 1);
        world.assert_path();
    });
}

#[test]
fn a_result_of_an_earlier_ramp_says_nothing_of_a_later_one() {
    check(2, || {
        let world = World::ramping(2);
        let bodies: [fn(&World); 2] = [
            |world| world.end(3, true, PROBE_MS + 10),
            |world| {
                // A second ramp, at once.
                let mut seen = world.state();
                while let Err(found) = world.breaker.live.word.change(seen, seen.put(Phase::Ramping)) {
                    seen = found;
                }
                let now = PROBE_MS + 10;
                let State { phase, generation, .. } = world.state();
                assert_eq!(phase, Phase::Ramping);
                world.end(generation, true, now);
                assert_eq!(world.state().phase, Phase::Ramping, "one bad result of two needed");
                world.end(generation, true, now);
                assert_eq!(world.shown(), Open);
            },
        ];
        world.on_threads(bodies);
    });
}

// --- The last calls ---

#[test]
fn two_bad_results_at_once_open_a_breaker_of_the_last_calls_once() {
    check(2, || {
        let rule = BreakerRule::error_ratio(0.5).unwrap().with_min_calls(2).unwrap();
        let world = World::of(rule.with_window_calls(2).unwrap());
        world.on_threads(
            [|world: &World| {
                let generation = world.enter(100).unwrap();
                world.end(generation, true, 100);
            }; 2],
        );
        assert_eq!(*world.log.lock().unwrap(), [(Closed, Open)]);
    });
}
