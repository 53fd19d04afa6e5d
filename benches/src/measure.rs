//! Timing in interleaved rounds, and counting allocations: the one harness of all that is compared here.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::alloc;

/// Something to measure.
pub trait Row: Sync {
    /// Makes so many calls in a lane, and tells how many ended otherwise than they should. Two lanes share no
    /// resource.
    fn calls(&self, lane: usize, n: u64) -> u64;

    /// Throws away what calls have piled up. It is called after each batch and is not part of its time.
    fn tidy(&self) {}
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub rounds: usize,
    /// Calls of each thread in a round.
    pub calls: u64,
    /// Rows whose calls would take longer than this in a round make fewer.
    pub longest: Option<Duration>,
    /// After so long there is no further round: on a machine that is busy, two threads wait long for one another.
    pub at_most: Option<Duration>,
}

impl Plan {
    pub const FULL: Self = Self { rounds: 101, calls: 10_000, longest: None, at_most: None };
    pub const QUICK: Self = Self { rounds: 9, calls: 4_000, longest: None, at_most: None };

    #[must_use]
    pub const fn with_longest(self, longest: Duration) -> Self {
        Self { longest: Some(longest), ..self }
    }

    #[must_use]
    pub const fn within(self, at_most: Duration) -> Self {
        Self { at_most: Some(at_most), ..self }
    }

    const fn first(self) -> u64 {
        if self.longest.is_some() && self.calls > 1_000 { 1_000 } else { self.calls }
    }

    /// The calls of the next batch, half-way between those of the last and what that one would have had: a batch that
    /// the machine interrupted moves them for a round or two.
    fn next(self, last: u64, ns: f64) -> u64 {
        (last * self.calls_of(ns)).isqrt()
    }

    /// The calls in a batch of what takes so many nanoseconds per call.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float above zero and below the plan's calls"
    )]
    fn calls_of(self, ns: f64) -> u64 {
        let Some(longest) = self.longest else { return self.calls };
        let calls = (longest.as_secs_f64() * 1e9 / ns) as u64;
        calls.clamp(FEWEST.min(self.calls), self.calls)
    }
}

/// Calls before anything is measured: resources are made, limits to be reached are reached.
const WARM_UP: u64 = 3_000;

/// The calls of a batch, however long they take.
const FEWEST: u64 = 32;

/// Who calls what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    OneThread,
    TwoOnOne,
    TwoOnTwo,
}

impl Setting {
    pub const ALL: [Self; 3] = [Self::OneThread, Self::TwoOnOne, Self::TwoOnTwo];

    pub const fn title(self) -> &'static str {
        match self {
            Self::OneThread => "1 thread",
            Self::TwoOnOne => "2 threads on one resource",
            Self::TwoOnTwo => "2 threads on two resources",
        }
    }

    /// The lane of each thread.
    pub const fn lanes(self) -> &'static [usize] {
        match self {
            Self::OneThread => &[0],
            Self::TwoOnOne => &[0, 0],
            Self::TwoOnTwo => &[0, 1],
        }
    }

    pub const fn n_resources(self) -> usize {
        match self {
            Self::OneThread | Self::TwoOnOne => 1,
            Self::TwoOnTwo => 2,
        }
    }
}

/// What a row took in one setting.
#[derive(Debug)]
pub struct Timing<'a, R> {
    pub row: &'a R,
    pub setting: Setting,
    /// Calls of each thread in a round, in the end.
    pub calls: u64,
    /// Nanoseconds per call, sorted: of each round in which the threads ran side by side.
    ns: Vec<f64>,
    /// Whether there was no such round: the one figure there is says nothing about two threads.
    pub apart: bool,
    /// Calls that ended otherwise than the row says.
    pub odd: u64,
}

impl<R> Timing<'_, R> {
    /// How many rounds the figures are of.
    pub fn n_rounds(&self) -> usize {
        self.ns.len()
    }

    fn add(&mut self, batch: &Batch) {
        self.odd += batch.odd;
        let together = batch.overlap >= TOGETHER;
        if together && std::mem::take(&mut self.apart) {
            self.ns.clear();
        }
        // Something has to be shown, even if the machine never runs two threads at once: the last.
        if together {
            self.ns.push(batch.ns);
        } else if self.apart {
            self.ns = vec![batch.ns];
        }
    }

    pub fn min(&self) -> f64 {
        self.ns[0]
    }

    pub fn median(&self) -> f64 {
        self.ns[self.ns.len() / 2]
    }

    pub fn max(&self) -> f64 {
        self.ns[self.ns.len() - 1]
    }
}

/// Times every row in every setting, one batch of each per round.
pub fn rounds<'a, R: Row>(rows: &[&'a R], plan: Plan) -> Vec<Timing<'a, R>> {
    for row in rows {
        warm(*row);
    }
    let mut timings: Vec<Timing<'a, R>> = Setting::ALL
        .into_iter()
        .flat_map(|setting| rows.iter().map(move |row| (*row, setting)))
        .map(|(row, setting)| Timing {
            row,
            setting,
            calls: plan.first(),
            ns: Vec::with_capacity(plan.rounds),
            apart: true,
            odd: 0,
        })
        .collect();
    let start = Instant::now();
    for _ in 0..plan.rounds {
        for timing in &mut timings {
            let batch = batch(timing.row, timing.setting, timing.calls);
            timing.calls = plan.next(timing.calls, batch.ns);
            timing.add(&batch);
        }
        if plan.at_most.is_some_and(|at_most| start.elapsed() >= at_most) {
            break;
        }
    }
    for timing in &mut timings {
        timing.ns.sort_by(f64::total_cmp);
    }
    timings
}

fn warm(row: &impl Row) {
    black_box([row.calls(0, WARM_UP), row.calls(1, WARM_UP)]);
    row.tidy();
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
fn batch(row: &impl Row, setting: Setting, n: u64) -> Batch {
    let mut odd = 0;
    let mut tries = 0;
    loop {
        let spans = spans(row, setting.lanes(), n);
        row.tidy();
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

fn spans(row: &impl Row, lanes: &[usize], n: u64) -> Vec<Span> {
    if let [lane] = lanes {
        return vec![span(row, *lane, n)];
    }
    let ready = AtomicUsize::new(0);
    let run = |lane: usize| {
        // What a thread makes for itself with its first call is not part of the batch.
        black_box(row.calls(lane, 64));
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

fn span(row: &impl Row, lane: usize, n: u64) -> Span {
    let start = Instant::now();
    let odd = row.calls(lane, n);
    Span { start, end: Instant::now(), odd }
}

/// How many calls the figures of [`allocations`] are of.
pub const ALLOCATION_CALLS: u64 = 10_000;

/// The allocations of so many calls of the row, once it is warm.
///
/// # Panics
///
/// The program's allocator is not [`alloc::Counting`], or has been told to stop.
pub fn allocations(row: &impl Row) -> u64 {
    warm(row);
    let before = alloc::calls();
    black_box(row.calls(0, ALLOCATION_CALLS));
    let n = alloc::calls() - before;
    row.tidy();
    n
}

/// Makes `n` calls of the row where an instruction counter can find them, and tells how many were odd.
pub fn count(row: &impl Row, n: u64) -> u64 {
    warm(row);
    counted_calls(row, n)
}

/// Its name is what callgrind is told to look for.
#[inline(never)]
fn counted_calls(row: &impl Row, n: u64) -> u64 {
    black_box(row.calls(0, n))
}

#[cfg(test)]
mod tests {
    use super::{Batch, Plan, Setting, Span, Timing, overlap};
    use std::time::{Duration, Instant};

    #[test]
    fn rows_that_take_long_make_fewer_calls_in_a_batch() {
        let plan = Plan::FULL.with_longest(Duration::from_millis(2));
        assert_eq!([2.0, 200.0, 2_000.0, 76_000.0].map(|ns| plan.calls_of(ns)), [10_000, 10_000, 1_000, 32]);
        let settled = |ns| (0..20).fold(plan.first(), |calls, _| plan.next(calls, ns));
        assert_eq!([2.0, 2_000.0, 76_000.0].map(settled), [9_998, 1_000, 32]);
    }

    #[test]
    fn rows_of_a_plan_without_a_longest_batch_make_the_same_calls_always() {
        assert_eq!([Plan::FULL.first(), Plan::FULL.next(10_000, 76_000.0)], [10_000, 10_000]);
    }

    #[test]
    fn what_threads_took_apart_is_shown_only_if_they_never_ran_together() {
        struct Nothing;
        let (row, setting) = (&Nothing, Setting::TwoOnOne);
        let mut timing = Timing { row, setting, calls: 1, ns: Vec::new(), apart: true, odd: 0 };
        let mut after = |ns, overlap| {
            timing.add(&Batch { ns, overlap, odd: 1 });
            (timing.ns.iter().map(|ns| ns.to_bits()).collect::<Vec<_>>(), timing.apart)
        };
        let bits = |ns: &[f64]| ns.iter().map(|ns| ns.to_bits()).collect::<Vec<_>>();
        assert_eq!(after(1.0, 0.0), (bits(&[1.0]), true));
        assert_eq!(after(2.0, 0.5), (bits(&[2.0]), true));
        assert_eq!(after(3.0, 0.95), (bits(&[3.0]), false));
        assert_eq!(after(4.0, 0.5), (bits(&[3.0]), false));
        assert_eq!(after(5.0, 1.0), (bits(&[3.0, 5.0]), false));
        assert_eq!(timing.odd, 5);
    }

    #[test]
    fn threads_overlap_for_the_share_of_the_longest_in_which_all_ran() {
        let start = Instant::now();
        let span = |from, to| Span {
            start: start + Duration::from_millis(from),
            end: start + Duration::from_millis(to),
            odd: 0,
        };
        let share = |spans: &[Span]| (overlap(spans) * 100.0).round();
        assert_eq!(share(&[span(0, 100), span(5, 100)]).to_bits(), 95.0f64.to_bits());
        assert_eq!(share(&[span(0, 100), span(100, 200)]).to_bits(), 0.0f64.to_bits());
    }
}
