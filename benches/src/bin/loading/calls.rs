//! Calls while rules are loaded, beside the same calls while nothing is.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use leap_runtime::{Outcome, Registry, Source, registry};
use quanta::Clock;

use crate::loads::timed;
use crate::rules::{N_RULES, SITES, id, patched, resources, set};

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// The least that each row takes in a round.
    pub(crate) slice: Duration,
}

impl Plan {
    pub(crate) const FULL: Self = Self { rounds: 21, slice: Duration::from_millis(120) };
    pub(crate) const QUICK: Self = Self { rounds: 3, slice: Duration::from_millis(60) };
}

/// What one more thread does meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It waits.
    Nothing,
    /// It computes, and has nothing to do with rules: what a busy thread more does to the callers.
    Work,
    /// It builds sets of 10 000 rules, each with all rules changed, and loads them.
    Loads,
    /// It patches one rule of 10 000.
    Patches,
}

impl Beside {
    pub(crate) const ALL: [Self; 4] = [Self::Nothing, Self::Work, Self::Loads, Self::Patches];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Nothing => "quiet",
            Self::Work => "busy",
            Self::Loads => "loads",
            Self::Patches => "patches",
        }
    }
}

/// How many threads call.
pub(crate) const CALLERS: [usize; 3] = [1, 2, 8];

/// How the resource is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Site,
    Name,
}

impl Way {
    pub(crate) const ALL: [Self; 2] = [Self::Site, Self::Name];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Site => "call site",
            Self::Name => "by name",
        }
    }
}

/// How long calls took in one slice, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quantiles {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

impl Quantiles {
    fn of(mut ns: Vec<u32>) -> Self {
        ns.sort_unstable();
        let at = |per_mille: usize| {
            let place = (ns.len() * per_mille / 1_000).min(ns.len().saturating_sub(1));
            ns.get(place).copied().map_or(0.0, f64::from)
        };
        Self { median: at(500), p99: at(990), p999: at(999), max: at(1_000) }
    }
}

/// What was measured of one row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) callers: usize,
    pub(crate) beside: Beside,
    /// Of each round, by call sites and by name.
    pub(crate) rounds: Vec<[Quantiles; 2]>,
    /// Milliseconds of each load, sorted.
    pub(crate) loads: Vec<f64>,
    /// Calls that were timed.
    pub(crate) calls: usize,
    /// Calls that were blocked, which none should be.
    pub(crate) odd: usize,
}

/// Every row in turn, so many times. The rules are those of the global registry, which call sites use.
pub(crate) fn rounds(plan: Plan) -> Vec<Row> {
    let names = resources(N_RULES / 2);
    registry().load(set(&names, 0)).expect("nothing is wrong with them");
    let mut loader = Loader { source: registry().source("loaded"), names: &names, version: 0 };
    let rows = CALLERS.into_iter().flat_map(|callers| Beside::ALL.map(|beside| (callers, beside)));
    let mut rows: Vec<Row> = rows
        .map(|(callers, beside)| Row { callers, beside, rounds: vec![], loads: vec![], calls: 0, odd: 0 })
        .collect();
    for _ in 0..plan.rounds {
        for row in &mut rows {
            loader.slice(row, plan.slice);
        }
    }
    for row in &mut rows {
        row.loads.sort_by(f64::total_cmp);
    }
    rows
}

struct Loader<'a> {
    source: Source,
    names: &'a [String],
    version: u32,
}

impl Loader<'_> {
    /// One row's turn in a round.
    fn slice(&mut self, row: &mut Row, slice: Duration) {
        let (ready, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let names = self.names;
        let called: Vec<Called> = thread::scope(|scope| {
            let threads: Vec<_> = (0..row.callers)
                .map(|thread| {
                    scope.spawn({
                        let (ready, is_over) = (&ready, &is_over);
                        move || call(thread, names, ready, is_over)
                    })
                })
                .collect();
            while ready.load(Ordering::Acquire) < row.callers {
                thread::yield_now();
            }
            let start = Instant::now();
            while start.elapsed() < slice {
                match row.beside {
                    Beside::Nothing => thread::sleep(slice.saturating_sub(start.elapsed())),
                    Beside::Work => (0..1_000).for_each(|i| _ = black_box(i)),
                    Beside::Loads => row.loads.push(self.load()),
                    Beside::Patches => row.loads.push(self.patch()),
                }
            }
            is_over.store(true, Ordering::Release);
            threads.into_iter().map(|thread| thread.join().expect("no call panics")).collect()
        });
        let mut ns = [vec![], vec![]];
        for Called { ns: of_thread, odd } in called {
            row.odd += odd;
            for (all, of_thread) in ns.iter_mut().zip(of_thread) {
                all.extend(of_thread);
            }
        }
        row.calls += ns.iter().map(Vec::len).sum::<usize>();
        row.rounds.push(ns.map(Quantiles::of));
    }

    fn load(&mut self) -> f64 {
        self.version += 1;
        let rules = set(self.names, self.version);
        timed(|| self.source.load(rules).expect("nothing is wrong with them"))
    }

    fn patch(&mut self) -> f64 {
        self.version += 1;
        let version = self.version;
        let id = id(version as usize % self.names.len());
        timed(|| self.source.patch(&id, |_| Ok(patched(version))).expect("it is there"))
    }
}

/// The calls of one thread.
struct Called {
    ns: [Vec<u32>; 2],
    odd: usize,
}

/// More are not kept, so that no thread allocates while it calls.
const KEPT: usize = 500_000;

/// Calls call sites and names in turn, and times each call from before it enters until it has ended, until it is over.
fn call(thread: usize, names: &[String], ready: &AtomicUsize, is_over: &AtomicBool) -> Called {
    let (registry, clock): (Registry, _) = (registry(), Clock::new());
    let mut called = Called { ns: [Vec::with_capacity(KEPT), Vec::with_capacity(KEPT)], odd: 0 };
    let mut way = |i: usize| {
        let name = &names[(i + thread * 1_009) % names.len()];
        let (_, site) = SITES[i % SITES.len()];
        let timed = |call: &dyn Fn() -> bool| {
            let start = clock.raw();
            let is_right = call();
            (clock.delta_as_nanos(start, clock.raw()), is_right)
        };
        let answers = [
            timed(&|| site(black_box(1)).is_ok()),
            timed(&|| registry.enter(name).map(|entry| entry.end(Outcome::Success)).is_ok()),
        ];
        for (kept, (ns, is_right)) in called.ns.iter_mut().zip(answers) {
            called.odd += usize::from(!is_right);
            if kept.len() < KEPT {
                kept.push(u32::try_from(ns).unwrap_or(u32::MAX));
            }
        }
    };
    // What is made with the first calls is not part of the slice.
    (0..names.len()).for_each(&mut way);
    ready.fetch_add(1, Ordering::AcqRel);
    let mut i = 0;
    while !is_over.load(Ordering::Acquire) {
        way(i);
        i += 1;
    }
    for kept in &mut called.ns {
        kept.drain(..names.len().min(kept.len()));
    }
    called
}
