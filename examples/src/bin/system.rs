//! A machine that can render 250 pages a second is asked for 300: with a rule for the system as a whole, and without.
//!
//! ```text
//! cargo run --release -p leap-examples --bin system
//! ```
//!
//! What to look at:
//!
//! - From second 3 to 7 more comes than the machine can do. *Without* a rule all of it is let in, and queues: calls in
//!   flight and response times grow from second to second, and come down long after the peak is over.
//! - *With* a rule, while over 0.8 of the processors' time is used, calls pass only while no more are in flight than get
//!   through. That is the estimate: the most that ended per second, times the shortest time that one took. The machine does
//!   as much as before, and calls take a fraction of the time. (The processors' time is looked at once a second, so the
//!   first second of the peak gets in.)
//! - When the peak is over, nobody is refused any more.
//!
//! Time is virtual, so all of it takes a moment.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leap_runtime::{
    Blocked, ManualClock, Registry, RuleSet, SystemProbe, SystemRule, SystemSample, Timestamp, guarded,
};

/// Calls per second, second by second.
const LOAD: [u32; 12] = [150, 150, 150, 300, 300, 300, 300, 300, 150, 150, 150, 150];
const PROCESSORS: u32 = 10;
/// What one of them has to do for a page.
const WORK_US: u32 = 40_000;
/// Everything goes by milliseconds.
const TICK_US: u32 = 1_000;
const SECOND_MS: u32 = 1_000;

#[guarded("page.render", inbound)]
async fn render(machine: &Machine) -> Result<(), Blocked> {
    let progress = || machine.progress.load(Ordering::Relaxed);
    let end = progress() + WORK_US;
    poll_fn(|_| if progress() < end { Poll::Pending } else { Poll::Ready(Ok(())) }).await
}

fn main() -> Result<(), Box<dyn Error>> {
    let without = run(RuleSet::new())?;
    let with = run(RuleSet::new().system(SystemRule::cpu(0.8)?))?;

    println!("                 without a rule              with one");
    println!(
        "second  offered  passed  in flight   rt avg  passed  blocked  in flight   rt avg   cpu  estimate"
    );
    for (second, (offered, (without, with))) in LOAD.iter().zip(without.iter().zip(&with)).enumerate() {
        let Row { passed, in_flight, rt, .. } = without;
        print!("{second:>6}  {offered:>7}  {passed:>6}  {in_flight:>9}  {:>4} ms", rt.as_millis());
        let Row { passed, blocked, in_flight, rt, cpu, estimate } = with;
        print!("  {passed:>6}  {blocked:>7}  {in_flight:>9}  {:>4} ms", rt.as_millis());
        println!("  {cpu:>4.2}  {estimate:>8.1}");
    }
    Ok(())
}

/// What was seen in a second.
struct Row {
    passed: u64,
    blocked: u64,
    in_flight: u64,
    rt: Duration,
    cpu: f64,
    estimate: f64,
}

/// A registry and a machine of their own under the load.
fn run(rules: RuleSet) -> Result<Vec<Row>, Box<dyn Error>> {
    let (clock, machine) = (ManualClock::new(), Arc::new(Machine::default()));
    let registry = Registry::builder().clock(clock.clone()).system_probe(Arc::clone(&machine)).build();
    registry.load(rules)?;

    let (mut rows, mut running) = (Vec::new(), Vec::new());
    for (second, offered) in (0..).zip(LOAD) {
        registry.scope(|| {
            for ms in 0..SECOND_MS {
                clock.set(Timestamp::from_millis(u64::from(second * SECOND_MS + ms)));
                machine.work(running.len());
                running.retain_mut(is_running);
                if ms * offered % SECOND_MS < offered {
                    running.push(Box::pin(render(&machine)));
                }
                running.retain_mut(is_running);
            }
        });
        let stats = registry.stats("page.render").ok_or("it was called")?;
        let (second, system) = (stats.second(), registry.system());
        rows.push(Row {
            passed: second.passed(),
            blocked: second.blocked(),
            in_flight: stats.in_flight(),
            rt: second.rt_avg().unwrap_or_default(),
            cpu: system.cpu_of_quota().unwrap_or_default(),
            estimate: system.estimate(),
        });
    }
    Ok(rows)
}

/// Polls once. Nobody has to be woken: every future is polled at every tick.
fn is_running<F: Future>(call: &mut Pin<Box<F>>) -> bool {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

/// Processors that are shared evenly by all calls that run.
#[derive(Default)]
struct Machine {
    /// How far a call has come that runs since the start, in µs.
    progress: AtomicU32,
    /// The processors' time since the last sample, in µs: what was used, and what there was.
    used: AtomicU32,
    all: AtomicU32,
}

impl Machine {
    /// Works for a tick on so many calls.
    fn work(&self, running: usize) {
        let running = u32::try_from(running).unwrap_or(u32::MAX);
        let busy = running.min(PROCESSORS);
        self.progress.fetch_add(TICK_US * busy / running.max(1), Ordering::Relaxed);
        self.used.fetch_add(TICK_US * busy, Ordering::Relaxed);
        self.all.fetch_add(TICK_US * PROCESSORS, Ordering::Relaxed);
    }
}

impl SystemProbe for Machine {
    fn sample(&self) -> SystemSample {
        let [used, all] = [&self.used, &self.all].map(|time| time.swap(0, Ordering::Relaxed));
        SystemSample::default()
            .with_quota(PROCESSORS.into())
            .with_cpu_of_quota(f64::from(used) / f64::from(all.max(1)))
    }
}
