//! leap's limiter beside those of other crates: time per decision, in interleaved rounds.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml
//! ```
//!
//! What is compared is not the same promise. leap's `exact` and `strict` are sliding windows: no span of one interval
//! holds more than the limit. governor's GCRA spaces permits evenly and allows a burst: with a burst of the whole
//! limit, up to twice the limit may pass in one interval. All read the processor's counter through quanta.

use std::hint::{black_box, spin_loop};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use leap_runtime::{Behavior, FlowRule, Limiter, Precision, RuleError};

const ROUNDS: usize = 101;
/// Calls of each thread in a round.
const CALLS: u64 = 10_000;
/// How often a batch of two threads is tried, and the share of it that they have to run side by side.
const TRIES: usize = 5;
const TOGETHER: f64 = 0.9;

/// Something that is asked for one permit at a time.
struct Row {
    name: &'static str,
    /// Whether it lets pass; the rows that say no were used up before.
    passes: bool,
    ask: Box<dyn Fn(u64) -> u64 + Sync>,
}

impl Row {
    /// `take` is called in a loop of this function's own, so that it can be inlined.
    fn new(name: &'static str, passes: bool, take: impl Fn() -> bool + Sync + 'static) -> Self {
        let ask = move |n| (0..n).map(|x| u64::from(take() != passes && black_box(x) < n)).sum();
        Self { name, passes, ask: Box::new(ask) }
    }
}

fn leap(limit: f64, precision: Precision, interval: Duration) -> Result<Limiter, RuleError> {
    Ok(Limiter::new(FlowRule::new(limit, Behavior::Reject)?.with_precision(precision)?.per(interval)?))
}

fn governor(quota: Quota) -> DefaultDirectRateLimiter {
    RateLimiter::direct(quota)
}

fn rows() -> Result<Vec<Row>, RuleError> {
    let hour = Duration::from_secs(3_600);
    // The exact rule is asked in full, and never refuses while a decision takes over 10 ns; the others stand at a
    // billion per second.
    let exact = leap(1_024.0, Precision::Exact, Duration::from_micros(10))?;
    let strict = leap(1e9, Precision::Strict, Duration::from_secs(1))?;
    let gcra = governor(Quota::per_second(NonZeroU32::new(1_000_000_000).expect("not zero")));
    let used_up_exact = leap(1_000.0, Precision::Exact, hour)?;
    let used_up_strict = leap(1_000.0, Precision::Strict, hour)?;
    let used_up_gcra = governor(Quota::per_hour(NonZeroU32::new(10).expect("not zero")));
    Ok(vec![
        Row::new("leap exact", true, move || exact.try_acquire(1).is_ok()),
        Row::new("leap strict", true, move || strict.try_acquire(1).is_ok()),
        Row::new("governor", true, move || gcra.check().is_ok()),
        Row::new("leap exact", false, move || used_up_exact.try_acquire(1).is_ok()),
        Row::new("leap strict", false, move || used_up_strict.try_acquire(1).is_ok()),
        Row::new("governor", false, move || used_up_gcra.check().is_ok()),
    ])
}

/// One thread's batch.
struct Span {
    start: Instant,
    end: Instant,
    odd: u64,
}

fn span(row: &Row) -> Span {
    let start = Instant::now();
    let odd = (row.ask)(CALLS);
    Span { start, end: Instant::now(), odd }
}

fn spans(row: &Row, n_threads: usize) -> Vec<Span> {
    if n_threads == 1 {
        return vec![span(row)];
    }
    let ready = AtomicUsize::new(0);
    let run = || {
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < n_threads {
            spin_loop();
        }
        span(row)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no row panics")).collect()
    })
}

/// The share of the longest batch during which all of them ran.
fn overlap(spans: &[Span]) -> f64 {
    let (start, end) = (spans.iter().map(|span| span.start).max(), spans.iter().map(|span| span.end).min());
    let longest = spans.iter().map(|span| span.end.duration_since(span.start)).max();
    let (Some(start), Some(end), Some(longest)) = (start, end, longest) else { return 0.0 };
    end.saturating_duration_since(start).as_secs_f64() / longest.as_secs_f64()
}

/// Nanoseconds per call if the threads ran side by side, and the calls that were answered otherwise than they should.
fn batch(row: &Row, n_threads: usize) -> (Option<f64>, u64) {
    let mut odd = 0;
    for _ in 0..TRIES {
        let spans = spans(row, n_threads);
        odd += spans.iter().map(|span| span.odd).sum::<u64>();
        if overlap(&spans) >= TOGETHER {
            #[expect(clippy::cast_precision_loss, reason = "a handful of threads, thousands of calls")]
            let calls = CALLS as f64 * spans.len() as f64;
            let seconds: f64 =
                spans.iter().map(|span| span.end.duration_since(span.start).as_secs_f64()).sum();
            return (Some(seconds * 1e9 / calls), odd);
        }
    }
    (None, odd)
}

fn main() -> Result<(), RuleError> {
    let rows = rows()?;
    for row in &rows {
        black_box((row.ask)(CALLS)); // warm, and used up where it is to refuse
    }
    let mut timings: Vec<_> = [1, 2]
        .into_iter()
        .flat_map(|n| rows.iter().map(move |row| (n, row, Vec::with_capacity(ROUNDS), 0)))
        .collect();
    for _ in 0..ROUNDS {
        for (n_threads, row, ns, odd) in &mut timings {
            let (time, more) = batch(row, *n_threads);
            ns.extend(time);
            *odd += more;
        }
    }
    println!("ns per decision, {ROUNDS} interleaved rounds of {CALLS} calls per thread");
    println!("\n{:<10}{:<10}{:<16}{:>8}{:>8}{:>8}", "threads", "answer", "limiter", "min", "median", "max");
    for (n_threads, row, mut ns, odd) in timings {
        ns.sort_by(f64::total_cmp);
        let answer = if row.passes { "pass" } else { "refuse" };
        print!("{n_threads:<10}{answer:<10}{:<16}", row.name);
        match ns.as_slice() {
            [] => println!("the machine never ran both threads at once"),
            [min, .., max] => println!("{min:>8.1}{:>8.1}{max:>8.1}{}", ns[ns.len() / 2], note(odd)),
            [only] => println!("{only:>8.1}{only:>8.1}{only:>8.1}{}", note(odd)),
        }
    }
    Ok(())
}

fn note(odd: u64) -> String {
    if odd == 0 { String::new() } else { format!("   {odd} calls were answered otherwise") }
}
