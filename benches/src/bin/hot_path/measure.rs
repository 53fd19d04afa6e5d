//! Timing in interleaved rounds, counting allocations, and calls for an instruction counter.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use leap_benches::alloc;

use crate::rows::Row;

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    /// Calls of each thread in a round.
    pub(crate) calls: u64,
}

impl Plan {
    pub(crate) const FULL: Self = Self { rounds: 101, calls: 10_000 };
    pub(crate) const QUICK: Self = Self { rounds: 9, calls: 4_000 };
}

/// Calls before anything is measured: resources are made, limits to be reached are reached.
const WARM_UP: u64 = 3_000;

/// Who calls what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    OneThread,
    TwoOnOne,
    TwoOnTwo,
}

impl Setting {
    pub(crate) const ALL: [Self; 3] = [Self::OneThread, Self::TwoOnOne, Self::TwoOnTwo];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::OneThread => "1 thread",
            Self::TwoOnOne => "2 threads on one resource",
            Self::TwoOnTwo => "2 threads on two resources",
        }
    }

    /// The lane of each thread.
    pub(crate) const fn lanes(self) -> &'static [usize] {
        match self {
            Self::OneThread => &[0],
            Self::TwoOnOne => &[0, 0],
            Self::TwoOnTwo => &[0, 1],
        }
    }
}

/// What a row took in one setting.
#[derive(Debug)]
pub(crate) struct Timing {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
    pub(crate) is_of_rule: bool,
    pub(crate) setting: Setting,
    /// Nanoseconds per call, sorted: of each round in which the threads ran side by side.
    ns: Vec<f64>,
    /// Calls that ended otherwise than the row says.
    pub(crate) odd: u64,
}

impl Timing {
    pub(crate) fn min(&self) -> f64 {
        self.ns[0]
    }

    pub(crate) fn median(&self) -> f64 {
        self.ns[self.ns.len() / 2]
    }

    pub(crate) fn max(&self) -> f64 {
        self.ns[self.ns.len() - 1]
    }
}

/// Times every row in every setting, one batch of each per round.
pub(crate) fn rounds(rows: &[&Row], plan: Plan) -> Vec<Timing> {
    let mut timings: Vec<(&Row, Timing)> = Setting::ALL
        .into_iter()
        .flat_map(|setting| rows.iter().map(move |row| (*row, setting)))
        .map(|(row, setting)| {
            (
                row,
                Timing {
                    name: row.name,
                    note: row.note,
                    is_of_rule: row.is_of_rule,
                    setting,
                    ns: Vec::with_capacity(plan.rounds),
                    odd: 0,
                },
            )
        })
        .collect();
    for row in rows {
        black_box([(row.calls)(0, WARM_UP), (row.calls)(1, WARM_UP)]);
    }
    for round in 1..=plan.rounds {
        for (row, timing) in &mut timings {
            let batch = batch(row, timing.setting, plan.calls);
            timing.odd += batch.odd;
            // Something has to be shown, even if the machine never runs two threads at once.
            if batch.overlap >= TOGETHER || round == plan.rounds && timing.ns.is_empty() {
                timing.ns.push(batch.ns);
            }
        }
    }
    timings
        .into_iter()
        .map(|(_, mut timing)| {
            timing.ns.sort_by(f64::total_cmp);
            timing
        })
        .collect()
}

/// Some calls, one after another in each thread.
struct Batch {
    /// Per call of a thread, the mean of the threads.
    ns: f64,
    /// The share of it that the threads ran side by side.
    overlap: f64,
    odd: u64,
}

/// Tries again while the machine does not run the threads at the same time: a thread that has the resource for itself
/// says nothing about two.
fn batch(row: &Row, setting: Setting, n: u64) -> Batch {
    let mut odd = 0;
    let mut tries = 0;
    loop {
        let spans = spans(row, setting.lanes(), n);
        odd += spans.iter().map(|span| span.odd).sum::<u64>();
        tries += 1;
        let overlap = overlap(&spans);
        if overlap >= TOGETHER || tries == TRIES {
            #[expect(clippy::cast_precision_loss, reason = "a handful of threads, thousands of calls")]
            let calls = n as f64 * spans.len() as f64;
            let seconds: f64 =
                spans.iter().map(|span| span.end.duration_since(span.start).as_secs_f64()).sum();
            return Batch { ns: seconds * 1e9 / calls, overlap, odd };
        }
    }
}

/// How often a batch is tried, and the share of it that the threads have to run side by side.
const TRIES: usize = 5;
const TOGETHER: f64 = 0.9;

/// One thread's batch.
struct Span {
    start: Instant,
    end: Instant,
    odd: u64,
}

/// The share of the longest batch during which all of them ran.
fn overlap(spans: &[Span]) -> f64 {
    let (start, end) = (spans.iter().map(|span| span.start).max(), spans.iter().map(|span| span.end).min());
    let longest = spans.iter().map(|span| span.end.duration_since(span.start)).max();
    let (Some(start), Some(end), Some(longest)) = (start, end, longest) else { return 0.0 };
    end.saturating_duration_since(start).as_secs_f64() / longest.as_secs_f64()
}

fn spans(row: &Row, lanes: &[usize], n: u64) -> Vec<Span> {
    if let [lane] = lanes {
        return vec![span(row, *lane, n)];
    }
    let ready = AtomicUsize::new(0);
    let run = |lane: usize| {
        // What a thread makes for itself with its first call is not part of the batch.
        black_box((row.calls)(lane, 64));
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < lanes.len() {
            spin_loop();
        }
        span(row, lane, n)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = lanes.iter().map(|lane| scope.spawn(|| run(*lane))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no row panics")).collect()
    })
}

fn span(row: &Row, lane: usize, n: u64) -> Span {
    let start = Instant::now();
    let odd = (row.calls)(lane, n);
    Span { start, end: Instant::now(), odd }
}

/// What the calls of a row have allocated.
#[derive(Debug)]
pub(crate) struct Allocations {
    pub(crate) name: &'static str,
    pub(crate) n: u64,
    pub(crate) at_most: u64,
}

impl Allocations {
    pub(crate) fn is_over(&self) -> bool {
        self.n > self.at_most
    }
}

/// The allocations of 10 000 calls of each row, once it is warm.
pub(crate) fn allocations(rows: &[&Row]) -> Vec<Allocations> {
    let allocations_of = |row: &&Row| {
        black_box((row.calls)(0, WARM_UP));
        let before = alloc::calls();
        black_box((row.calls)(0, ALLOCATION_CALLS));
        Allocations { name: row.name, n: alloc::calls() - before, at_most: row.allocations }
    };
    rows.iter().map(allocations_of).collect()
}

/// How many calls the figures of [`allocations`] are of.
pub(crate) const ALLOCATION_CALLS: u64 = 10_000;

/// Makes `n` calls of the row where an instruction counter can find them.
pub(crate) fn count(row: &Row, n: u64) {
    black_box((row.calls)(0, WARM_UP));
    let odd = counted_calls(row, n);
    println!("{n} calls of `{}`, {odd} of them ended otherwise than they should", row.name);
}

/// Its name is what callgrind is told to look for.
#[inline(never)]
fn counted_calls(row: &Row, n: u64) -> u64 {
    black_box((row.calls)(0, n))
}
