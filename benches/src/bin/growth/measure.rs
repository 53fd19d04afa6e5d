//! Timing all points of all series in interleaved rounds.

use std::fmt;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use leap_benches::alloc;

/// The same calls while one thing grows.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
    pub(crate) points: Vec<Point>,
}

/// One size of it.
pub(crate) struct Point {
    pub(crate) label: String,
    /// How many threads call at the same time, all the same.
    pub(crate) threads: usize,
    /// Calls of each thread in a round, and as many as are made before those that are timed.
    pub(crate) calls: u64,
    pub(crate) warm: u64,
    /// Makes so many calls, and tells how many ended otherwise than they should.
    pub(crate) run: Run,
}

pub(crate) type Run = Box<dyn Fn(u64) -> u64 + Sync>;

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Point").field("label", &self.label).finish_non_exhaustive()
    }
}

/// What was measured of a series.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) note: &'static str,
    pub(crate) points: Vec<Timed>,
}

/// What was measured of a point.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) label: String,
    pub(crate) threads: usize,
    /// Per call of a thread, sorted.
    ns: Vec<f64>,
    /// Per call.
    pub(crate) allocations: f64,
    /// Calls that ended otherwise than they should.
    pub(crate) odd: u64,
}

impl Timed {
    pub(crate) fn min(&self) -> f64 {
        self.ns[0]
    }

    pub(crate) fn median(&self) -> f64 {
        self.ns[self.ns.len() / 2]
    }
}

impl Measured {
    /// How much longer a call takes than at the first point, by the medians.
    pub(crate) fn ratio(&self, point: &Timed) -> f64 {
        point.median() / self.points[0].median()
    }

    /// The same by the least, which other load disturbs less.
    pub(crate) fn least_ratio(&self, point: &Timed) -> f64 {
        point.min() / self.points[0].min()
    }
}

/// One batch of each point per round, so that a bad moment of the machine hits all alike; `in_each` is done in each too.
pub(crate) fn rounds(series: &[Series], n_rounds: usize, mut in_each: impl FnMut()) -> Vec<Measured> {
    let mut measured: Vec<Measured> = series
        .iter()
        .map(|Series { name, note, points }| Measured {
            name,
            note,
            points: points.iter().map(allocations).collect(),
        })
        .collect();
    for round in 1..=n_rounds {
        in_each();
        for (series, measured) in series.iter().zip(&mut measured) {
            for (point, timed) in series.points.iter().zip(&mut measured.points) {
                let batch = batch(point);
                timed.odd += batch.odd;
                // Something has to be shown, even if the machine never runs two threads at once.
                if batch.is_together || round == n_rounds && timed.ns.is_empty() {
                    timed.ns.push(batch.ns);
                }
            }
        }
    }
    for timed in measured.iter_mut().flat_map(|measured| &mut measured.points) {
        timed.ns.sort_by(f64::total_cmp);
    }
    measured
}

/// The point with what its calls allocate, once it is warm.
fn allocations(point: &Point) -> Timed {
    let odd = (point.run)(point.warm.max(3_000));
    let before = alloc::calls();
    black_box((point.run)(point.calls));
    #[expect(clippy::cast_precision_loss, reason = "millions of them")]
    let allocations = (alloc::calls() - before) as f64 / point.calls as f64;
    Timed { label: point.label.clone(), threads: point.threads, ns: vec![], allocations, odd }
}

/// The calls of a point in a round.
struct Batch {
    /// Per call of a thread, the mean of the threads.
    ns: f64,
    /// Whether the threads ran side by side nearly all the time: one that has the resource for itself says nothing
    /// about two.
    is_together: bool,
    odd: u64,
}

/// How often a batch is tried until its threads run side by side, and the share of it that they have to.
const TRIES: usize = 5;
const TOGETHER: f64 = 0.9;

fn batch(point: &Point) -> Batch {
    let mut odd = 0;
    let mut tries = 0;
    loop {
        let spans = spans(point);
        odd += spans.iter().map(|(.., odd)| odd).sum::<u64>();
        tries += 1;
        let is_together = overlap(&spans) >= TOGETHER;
        if is_together || tries == TRIES {
            let seconds: f64 =
                spans.iter().map(|(start, end, _)| end.duration_since(*start).as_secs_f64()).sum();
            #[expect(clippy::cast_precision_loss, reason = "thousands of calls")]
            let ns = seconds * 1e9 / (point.calls as f64 * spans.len() as f64);
            return Batch { ns, is_together, odd };
        }
    }
}

/// A thread's batch, and how many of its calls were odd.
type Span = (Instant, Instant, u64);

fn spans(point: &Point) -> Vec<Span> {
    let ready = AtomicUsize::new(0);
    let run = || {
        let mut odd = (point.run)(point.warm);
        ready.fetch_add(1, Ordering::AcqRel);
        spin_until(|| ready.load(Ordering::Acquire) == point.threads);
        let start = Instant::now();
        odd += (point.run)(point.calls);
        (start, Instant::now(), odd)
    };
    if point.threads == 1 {
        return vec![run()];
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..point.threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no call panics")).collect()
    })
}

/// Spins, but leaves the core to others if that takes long: the other thread may need it.
fn spin_until(is_so: impl Fn() -> bool) {
    const SPINS: u32 = 2_000;
    let mut spins = 0;
    while !is_so() {
        spins += 1;
        if spins < SPINS { spin_loop() } else { thread::yield_now() }
    }
}

/// The share of the longest batch during which all of them ran.
fn overlap(spans: &[Span]) -> f64 {
    let (start, end) = (spans.iter().map(|span| span.0).max(), spans.iter().map(|span| span.1).min());
    let longest = spans.iter().map(|span| span.1.duration_since(span.0)).max();
    let (Some(start), Some(end), Some(longest)) = (start, end, longest) else { return 0.0 };
    end.saturating_duration_since(start).as_secs_f64() / longest.as_secs_f64()
}

/// What it takes to hand a cache line from one core to another and have it back, halved, in ns: two threads raise one
/// number in turn. Where others keep the cores from it, it takes far longer.
pub(crate) fn transfer_ns() -> f64 {
    const TURNS: usize = 500;
    let word = AtomicUsize::new(0);
    let in_turn = |first: usize| {
        let start = Instant::now();
        for turn in 0..TURNS {
            let mine = 2 * turn + first;
            spin_until(|| word.load(Ordering::Acquire) == mine);
            word.store(mine + 1, Ordering::Release);
        }
        start.elapsed().as_secs_f64()
    };
    let seconds = thread::scope(|scope| {
        let other = scope.spawn(|| in_turn(1));
        // Whoever comes first waits for the other to be there.
        in_turn(0).min(other.join().expect("it does not panic"))
    });
    #[expect(clippy::cast_precision_loss, reason = "a thousand")]
    let handed_over = (2 * TURNS) as f64;
    seconds * 1e9 / handed_over
}
