//! Limits on all inbound calls together, by figures of the machine or by the calls' own.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::fs;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use common::{R, Recorder, at, ms, passes, qps};
use leap_runtime::{
    Blocked, Cause, Dimension, Entry, FlowRule, HostProbe, IsolationRule, ManualClock, Mode, Outcome,
    Precision, Registry, RuleSet, SystemProbe, SystemRule, SystemSample, SystemStats,
};

/// A machine of the test's own. Clones are one machine.
#[derive(Clone, Debug, Default)]
struct Machine {
    says: Arc<Mutex<SystemSample>>,
    asked: Arc<AtomicU32>,
}

impl Machine {
    fn says(&self, sample: SystemSample) {
        *self.says.lock().unwrap() = sample;
    }

    /// How often it was asked since the last time.
    fn asked(&self) -> u32 {
        self.asked.swap(0, Ordering::Relaxed)
    }
}

impl SystemProbe for Machine {
    fn sample(&self) -> SystemSample {
        self.asked.fetch_add(1, Ordering::Relaxed);
        *self.says.lock().unwrap()
    }
}

/// A registry on a machine with these rules, and what the machine says already.
fn on(says: SystemSample, rules: impl IntoIterator<Item = SystemRule>) -> (Registry, ManualClock, Machine) {
    let (clock, machine) = (ManualClock::new(), Machine::default());
    machine.says(says);
    let registry = Registry::builder().clock(clock.clone()).system_probe(machine.clone()).build();
    registry.load(guarding(rules)).unwrap();
    (registry, clock, machine)
}

fn guarding(rules: impl IntoIterator<Item = SystemRule>) -> RuleSet {
    rules.into_iter().fold(RuleSet::new(), RuleSet::system)
}

fn cpu(share: f64) -> SystemSample {
    SystemSample::default().with_cpu_of_quota(share)
}

fn inbound(registry: &Registry, resource: &str) -> Result<Entry, Blocked> {
    registry.enter_with(resource).inbound().enter()
}

/// Makes `n` inbound calls that end well at once, and tells how many were let through.
fn inbound_passes(registry: &Registry, resource: &str, n: usize) -> usize {
    (0..n).filter(|_| inbound(registry, resource).map(|entry| entry.end(Outcome::Success)).is_ok()).count()
}

/// H03.
#[test]
fn inbound_calls_of_all_resources_have_the_limit_together_and_outbound_ones_are_not_concerned() {
    let (registry, clock, _) = on(SystemSample::default(), [SystemRule::qps(1.0).unwrap()]);
    assert_eq!(
        [inbound_passes(&registry, "orders.create", 1), inbound_passes(&registry, "orders.create", 1)],
        [1, 0]
    );
    assert_eq!([inbound_passes(&registry, "stock.read", 2), passes(&registry, "mail.send", 2)], [0, 2]);
    assert_eq!(passes(&registry, "orders.create", 2), 2, "the call decides, and not the resource");
    clock.set(at(999));
    let blocked = inbound(&registry, "orders.create").unwrap_err();
    assert_eq!((blocked.cause(), blocked.retry_after()), (Cause::System, Some(ms(1))));
    assert_eq!((blocked.limit(), blocked.observed()), (Some(1.0), Some(1.0)));
    assert_eq!(blocked.rule().to_string(), "loaded/system/0");
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: the system's limit of 1 inbound calls per second is reached; retry after 1ms"
    );
    assert_eq!(registry.system().inbound_qps(), 1);
    clock.set(at(1_000));
    assert_eq!(inbound_passes(&registry, "stock.read", 2), 1);
    let blocked = |name: &str| registry.stats(name).unwrap().totals().blocked_by(Cause::System);
    assert_eq!([blocked("orders.create"), blocked("stock.read"), blocked("mail.send")], [2, 3, 0]);
}

#[test]
fn no_more_inbound_calls_than_allowed_are_in_flight() {
    let (registry, _, _) = on(SystemSample::default(), [SystemRule::concurrency(2)]);
    let held = [inbound(&registry, "a").unwrap(), inbound(&registry, "b").unwrap()];
    let beside = registry.enter("c").unwrap();
    let blocked = inbound(&registry, "c").unwrap_err();
    assert_eq!((blocked.limit(), blocked.observed(), blocked.retry_after()), (Some(2.0), Some(2.0), None));
    assert_eq!(
        blocked.to_string(),
        "`c` is blocked: 2 inbound calls are in flight and the system's limit is 2"
    );
    assert_eq!(registry.system().inbound_in_flight(), 2);
    drop(held);
    assert!(registry.enter_with("c").inbound().permits(3).enter().is_err());
    assert!(registry.enter_with("c").inbound().permits(2).enter().is_ok());
    drop(beside);
    assert_eq!(registry.system().inbound_in_flight(), 0);
}

#[test]
fn calls_in_flight_are_counted_out_however_they_end() {
    let (registry, _, _) = on(SystemSample::default(), [SystemRule::concurrency(1)]);
    for outcome in [Outcome::Success, Outcome::Exception, Outcome::Ignored, Outcome::Cancelled] {
        inbound(&registry, R).unwrap().end(outcome);
    }
    let entry = inbound(&registry, R).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        entry.run(|| -> Result<(), ()> { panic!("in the body") })
    }));
    assert!(panicked.is_err());
    let mut future =
        Box::pin(inbound(&registry, R).unwrap().run_async(std::future::pending::<Result<(), ()>>()));
    assert!(poll(&mut future).is_pending());
    assert!(inbound(&registry, R).is_err());
    drop(future);
    // Blocked by a later rule.
    registry
        .load(guarding([SystemRule::concurrency(1)]).flow(R, qps(0.0)).isolation("i", IsolationRule::new(0)))
        .unwrap();
    assert_eq!([inbound_passes(&registry, R, 3), inbound_passes(&registry, "i", 3)], [0, 0]);
    assert_eq!((registry.system().inbound_in_flight(), inbound_passes(&registry, "other", 2)), (0, 2));
}

fn poll<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_call_that_waits_for_its_turn_is_in_flight_for_the_system_and_no_longer_when_it_is_dropped() {
    let (registry, _, _) = on(SystemSample::default(), []);
    let throttle = FlowRule::new(1.0, leap_runtime::Behavior::Throttle { max_wait: ms(5_000) }).unwrap();
    registry.load(guarding([SystemRule::concurrency(2)]).flow(R, throttle)).unwrap();
    assert_eq!(inbound_passes(&registry, R, 1), 1);
    let mut waits = Box::pin(registry.enter_with(R).inbound().enter_async());
    assert!(poll(&mut waits).is_pending());
    assert_eq!(registry.system().inbound_in_flight(), 1);
    drop(waits);
    assert_eq!(registry.system().inbound_in_flight(), 0);
}

#[test]
fn inbound_calls_pass_while_those_of_the_last_second_were_fast_enough() {
    let (registry, clock, _) = on(SystemSample::default(), [SystemRule::avg_rt(ms(50)).unwrap()]);
    let take = |name, rt| {
        let entry = inbound(&registry, name).unwrap();
        clock.advance(ms(rt));
        entry.end(Outcome::Success);
    };
    take("a", 40);
    take("b", 60);
    assert_eq!(registry.system().avg_rt(), Some(ms(50)));
    take("a", 51);
    let blocked = inbound(&registry, "b").unwrap_err();
    assert_eq!(
        blocked.to_string(),
        "`b` is blocked: inbound calls take 50.3ms on average, over the system's limit of 50ms"
    );
    assert!(registry.enter("b").is_ok());
    // The buckets of the first half second are the last to leave.
    clock.set(at(999));
    assert!(inbound(&registry, "b").is_err());
    clock.set(at(1_000));
    assert!(inbound(&registry, "b").is_ok());
}

/// H06.
#[test]
fn a_busy_machine_lets_in_what_gets_through() {
    let (registry, clock, machine) = on(cpu(0.95), [SystemRule::cpu(0.8).unwrap()]);
    drop(inbound(&registry, R).unwrap());
    // 50 calls of 100 ms in half a second are 10 at a time.
    machine.says(cpu(0.5));
    clock.set(at(1_000));
    for _ in 0..5 {
        let together: Vec<_> = (0..10).map(|_| inbound(&registry, R).unwrap()).collect();
        clock.advance(ms(if registry.system().inbound_qps() == 50 { 99 } else { 100 }));
        for entry in together {
            entry.end(Outcome::Success);
        }
    }
    let estimate = registry.system().estimate();
    assert!((9.9..=10.0).contains(&estimate), "{estimate}");
    machine.says(cpu(0.95));
    registry.sample_system();
    let mut held: Vec<_> = (0..5).map(|_| inbound(&registry, R).unwrap()).collect();
    held.extend((0..20).map_while(|_| inbound(&registry, R).ok()));
    assert_eq!(held.len(), 10, "while no more than 9 are found in flight");
    let blocked = inbound(&registry, R).unwrap_err();
    assert_eq!(
        (blocked.cause(), blocked.limit(), blocked.observed()),
        (Cause::System, Some(0.8), Some(0.95))
    );
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: the cpu is at 0.95 of its quota, over the system's limit of 0.8, with 10 inbound \
         calls in flight"
    );
    assert!(registry.enter(R).is_ok());
    machine.says(cpu(0.8));
    registry.sample_system();
    assert!(inbound(&registry, R).is_ok(), "at its limit it is not above it");
}

#[test]
fn where_nothing_is_known_ten_are_let_in_and_one_always_is() {
    let (registry, _, _) = on(SystemSample::default().with_load(9.0), [SystemRule::load(8.0).unwrap()]);
    let held: Vec<_> = (0..20).map_while(|_| inbound(&registry, R).ok()).collect();
    assert_eq!(held.len(), 11);
    let blocked = inbound(&registry, R).unwrap_err();
    assert_eq!(
        blocked.to_string(),
        "`orders.create` is blocked: the load is 9.00, over the system's limit of 8, with 11 inbound calls in flight"
    );
    for entry in held {
        entry.end(Outcome::Success);
    }
    // They took no time at all, so that nothing is estimated to get through.
    let held: Vec<_> = (0..20).map_while(|_| inbound(&registry, R).ok()).collect();
    assert_eq!(held.len(), 2);
}

/// H04.
#[test]
fn of_several_rules_the_lowest_of_each_dimension_holds_and_all_are_listed() {
    let rules = [
        SystemRule::cpu(0.9).unwrap(),
        SystemRule::cpu(0.7).unwrap(),
        SystemRule::qps(100.0).unwrap(),
        SystemRule::concurrency(50),
    ];
    let (registry, _, _) = on(cpu(0.8), rules.clone());
    let loaded = registry.loaded();
    let listed: Vec<_> = loaded.of_system().iter().map(|named| named.rule().clone()).collect();
    assert_eq!(listed, rules.map(leap_runtime::Rule::from));
    let dimensions: Vec<_> = registry.system().dimensions().iter().map(ToString::to_string).collect();
    assert_eq!(
        dimensions,
        [
            "inbound_qps: 0 of at most 100 (loaded/system/2)",
            "inbound_concurrency: 0 of at most 50 (loaded/system/3)",
            "cpu_of_quota: 0.8 of at most 0.7 (loaded/system/1)",
        ]
    );
    let held: Vec<_> = (0..20).map_while(|_| inbound(&registry, R).ok()).collect();
    assert_eq!((held.len(), inbound(&registry, R).unwrap_err().rule().position()), (11, 1));
}

/// H05.
#[test]
fn a_figure_that_the_platform_lacks_makes_its_rule_inactive_and_shows_so() {
    let (clock, recorder) = (ManualClock::new(), Recorder::default());
    let registry = Registry::builder()
        .clock(clock.clone())
        .system_probe(Machine::default())
        .observer(recorder.clone())
        .build();
    let report =
        registry.load(guarding([SystemRule::load(0.0).unwrap(), SystemRule::cpu(0.0).unwrap()])).unwrap();
    assert_eq!(
        report.notes(),
        [
            "system: no load average can be read here; limits on it are inactive",
            "system: no quota of processor time can be read here; figures are the machine's",
        ]
    );
    assert_eq!(recorder.take().len(), 1, "it is told once");
    let held: Vec<_> = (0..100).map(|_| inbound(&registry, R).unwrap()).collect();
    let stats = registry.system();
    assert_eq!((stats.load(), stats.cpu_of_quota(), stats.inbound_in_flight()), (None, None, 100));
    assert!(stats.dimensions().iter().all(|dimension| !dimension.is_available()));
    let shown = stats.to_string();
    assert!(
        shown.contains("\n  load: unavailable, so the limit of 0 is inactive (loaded/system/0)"),
        "{shown}"
    );
    drop(held);
}

/// H07.
#[test]
fn the_figure_of_the_processor_says_whose_it_is() {
    let sample = cpu(0.9).with_quota(0.5).with_load(2.25);
    let (registry, _, _) = on(sample, [SystemRule::cpu(0.2).unwrap(), SystemRule::load(8.0).unwrap()]);
    let stats = registry.system();
    assert_eq!((stats.load(), stats.cpu_of_quota(), stats.quota()), (Some(2.25), Some(0.9), Some(0.5)));
    let dimensions: Vec<_> =
        stats.dimensions().iter().map(|one| (one.dimension(), one.limit(), one.observed())).collect();
    assert_eq!(dimensions, [(Dimension::Load, 8.0, Some(2.25)), (Dimension::Cpu, 0.2, Some(0.9))]);
    assert_eq!(
        stats.to_string(),
        "system: load 2.25, cpu 0.90 of a quota of 0.5 processors; inbound: 0 in the last second, 0 in flight \
         (estimate 10.0)\n  \
         load: 2.25 of at most 8 (loaded/system/1)\n  \
         cpu_of_quota: 0.9 of at most 0.2 (loaded/system/0)"
    );
}

#[test]
fn nonsense_of_a_probe_is_ignored_and_counted_and_the_figure_before_it_stands() {
    let (registry, clock, machine) = on(cpu(0.9), [SystemRule::cpu(0.8).unwrap()]);
    for (n, nonsense) in (1..).zip([f64::NAN, f64::INFINITY, -1.0, 90.0]) {
        machine.says(cpu(nonsense).with_load(nonsense));
        clock.advance(ms(1_000));
        assert!(inbound(&registry, R).is_ok());
        let stats = registry.system();
        assert_eq!(stats.cpu_of_quota(), Some(0.9), "{nonsense}");
        // As a load, 90 is one.
        assert_eq!(stats.ignored_samples(), if n == 4 { 7 } else { 2 * n }, "{nonsense}");
    }
    // What is never renewed is not believed for ever.
    machine.says(cpu(f64::NAN));
    clock.advance(ms(6_001));
    let held: Vec<_> = (0..100).map(|_| inbound(&registry, R)).collect();
    assert!(held.iter().all(Result::is_ok));
    assert_eq!(registry.system().cpu_of_quota(), None);
}

/// F09.
#[test]
fn a_probe_that_panics_is_contained_and_blocks_nobody() {
    struct Broken;
    impl SystemProbe for Broken {
        fn sample(&self) -> SystemSample {
            panic!("no such file")
        }
    }
    let (clock, recorder) = (ManualClock::new(), Recorder::default());
    let registry =
        Registry::builder().clock(clock.clone()).system_probe(Broken).observer(recorder.clone()).build();
    registry.load(guarding([SystemRule::cpu(0.0).unwrap()])).unwrap();
    assert_eq!(registry.contained_panics(), 1, "the first sample is taken when the rule is loaded");
    recorder.take();
    assert_eq!(inbound_passes(&registry, R, 10), 10);
    assert_eq!(registry.contained_panics(), 1, "once a second");
    clock.set(at(1_000));
    assert_eq!((inbound_passes(&registry, R, 10), registry.contained_panics()), (10, 2));
    registry.sample_system();
    assert_eq!((registry.contained_panics(), registry.system().inbound_in_flight()), (3, 0));
    assert_eq!(recorder.take()[0], "panic in system probe (None): no such file");
}

#[test]
fn the_machine_is_asked_at_most_once_a_second_by_the_calls_that_need_to_know() {
    let (registry, clock, machine) = on(cpu(0.1), [SystemRule::qps(100.0).unwrap()]);
    assert_eq!((inbound_passes(&registry, R, 5), machine.asked()), (5, 0), "calls are counted without it");
    registry.load(guarding([SystemRule::cpu(0.5).unwrap()])).unwrap();
    assert_eq!(machine.asked(), 1, "what is loaded is measured from");
    for (ms, asked) in [(0, 0), (999, 0), (1_000, 1), (1_999, 0), (2_500, 1), (3_499, 0), (3_500, 1)] {
        clock.set(at(ms));
        assert_eq!(passes(&registry, R, 5), 5);
        assert_eq!(machine.asked(), 0, "by an outbound call at {ms} ms");
        assert_eq!((inbound_passes(&registry, R, 5), machine.asked()), (5, asked), "at {ms} ms");
    }
    registry.sample_system();
    assert_eq!(machine.asked(), 1);
    clock.set(at(4_499));
    assert_eq!((inbound_passes(&registry, R, 5), machine.asked()), (5, 0));
    registry.load(RuleSet::new()).unwrap();
    clock.set(at(9_000));
    assert_eq!((inbound_passes(&registry, R, 5), machine.asked()), (5, 0));
}

#[test]
fn before_any_rule_nothing_is_sampled_or_counted() {
    let (registry, _, machine) = on(cpu(1.0), []);
    let held = inbound(&registry, R).unwrap();
    registry.sample_system();
    assert_eq!((registry.system(), machine.asked()), (SystemStats::default(), 0));
    registry.load(guarding([SystemRule::concurrency(1)])).unwrap();
    // It was there before.
    assert_eq!(inbound_passes(&registry, R, 2), 2);
    drop(held);
    assert_eq!(registry.system().inbound_in_flight(), 0);
}

#[test]
fn a_rule_that_is_off_decides_nothing() {
    let (registry, _, machine) = on(cpu(1.0), [SystemRule::qps(0.0).unwrap().with_mode(Mode::Off)]);
    assert_eq!((inbound_passes(&registry, R, 5), machine.asked()), (5, 0));
    assert_eq!(registry.system().dimensions(), []);
}

#[test]
fn as_sentinel_a_busy_processor_refuses_every_inbound_call() {
    let rule = SystemRule::cpu(0.8).unwrap().with_precision(Precision::Sentinel).unwrap();
    let (registry, _, machine) = on(cpu(0.81), [rule]);
    assert_eq!((inbound_passes(&registry, R, 5), passes(&registry, R, 5)), (0, 5));
    machine.says(cpu(0.8));
    registry.sample_system();
    assert_eq!(inbound_passes(&registry, R, 5), 5);
}

#[test]
fn a_reload_keeps_what_is_in_flight_and_what_passed_within_the_second() {
    let (registry, clock, _) =
        on(SystemSample::default(), [SystemRule::concurrency(2), SystemRule::qps(3.0).unwrap()]);
    let held = [inbound(&registry, "a").unwrap(), inbound(&registry, "b").unwrap()];
    clock.set(at(500));
    registry.load(guarding([SystemRule::qps(3.0).unwrap(), SystemRule::concurrency(3)])).unwrap();
    let third = inbound(&registry, "c").unwrap();
    assert_eq!(
        inbound(&registry, "d").unwrap_err().to_string(),
        "`d` is blocked: the system's limit of 3 inbound calls per second is reached; retry after 500ms"
    );
    registry.load(guarding([SystemRule::concurrency(3)])).unwrap();
    assert_eq!(registry.system().inbound_in_flight(), 3);
    assert!(inbound(&registry, "d").is_err());
    // Nobody guards for a while, and calls of before end meanwhile.
    registry.load(RuleSet::new()).unwrap();
    drop(held);
    let unseen = inbound(&registry, "e").unwrap();
    registry.load(guarding([SystemRule::concurrency(2)])).unwrap();
    assert_eq!(registry.system().inbound_in_flight(), 1);
    let fourth = inbound(&registry, "d").unwrap();
    assert!(inbound(&registry, "d").is_err());
    drop((third, fourth, unseen));
    assert_eq!(registry.system().inbound_in_flight(), 0);
}

#[test]
fn asking_takes_nothing_from_the_system() {
    let (registry, _, _) =
        on(SystemSample::default(), [SystemRule::qps(1.0).unwrap(), SystemRule::concurrency(1)]);
    let would = || registry.enter_with(R).inbound().would_pass();
    assert!(registry.enter(R).is_ok());
    for _ in 0..100 {
        assert!(would().is_ok());
    }
    drop(inbound(&registry, R).unwrap());
    assert_eq!(would().unwrap_err().cause(), Cause::System);
    assert!(registry.would_pass(R, 1).is_ok());
}

#[test]
fn what_a_resources_own_rule_refuses_takes_nothing_from_the_systems_second() {
    let (registry, _, _) = on(SystemSample::default(), []);
    let rules =
        guarding([SystemRule::qps(2.0).unwrap()]).flow(R, qps(1.0)).isolation("i", IsolationRule::new(0));
    registry.load(rules).unwrap();
    assert_eq!([inbound_passes(&registry, R, 9), inbound_passes(&registry, "i", 9)], [1, 0]);
    assert_eq!(inbound_passes(&registry, "other", 9), 1);
}

#[test]
fn threads_together_pass_exactly_what_the_system_allows() {
    let (registry, _, _) = on(SystemSample::default(), [SystemRule::qps(100.0).unwrap()]);
    let passed: usize = std::thread::scope(|scope| {
        let registry = &registry;
        let threads: Vec<_> =
            (0..8).map(|n| scope.spawn(move || inbound_passes(registry, &format!("r{n}"), 50))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((passed, registry.system().inbound_in_flight()), (100, 0));
}

/// A directory to lay files out in, which goes when it is dropped.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("leap-system-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self(root)
    }

    fn with(self, file: &str, text: &str) -> Self {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A registry whose machine these files are, with a rule on load and one on the processor.
    fn registry(&self) -> (Registry, Vec<String>) {
        let probe = HostProbe::under(&self.0);
        let registry = Registry::builder().clock(ManualClock::new()).system_probe(probe).build();
        let rules = guarding([SystemRule::load(4.0).unwrap(), SystemRule::cpu(0.8).unwrap()]);
        let notes = registry.load(rules).unwrap().notes().to_vec();
        (registry, notes)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// H01. What share of it is used is told from two samples, with the time between them in the hand, in the probe's own
/// tests.
#[test]
fn the_quota_is_that_of_the_group_or_the_smallest_above_it_and_not_rounded() {
    let files = Files::new("v2")
        .with("proc/loadavg", "4.50 1.00 0.50 2/345 6789\n")
        .with("proc/self/cgroup", "0::/kubepods/pod7/app\n")
        .with("sys/fs/cgroup/cpu.stat", "usage_usec 9000000\n")
        .with("sys/fs/cgroup/kubepods/cpu.stat", "usage_usec 8000000\n")
        .with("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n")
        .with("sys/fs/cgroup/kubepods/pod7/cpu.stat", "usage_usec 7000000\n")
        .with("sys/fs/cgroup/kubepods/pod7/cpu.max", "50000 100000\n")
        .with("sys/fs/cgroup/kubepods/pod7/app/cpu.stat", "usage_usec 450000\n")
        .with("sys/fs/cgroup/kubepods/pod7/app/cpu.max", "125000 100000\n");
    let (registry, notes) = files.registry();
    let stats = registry.system();
    assert_eq!((stats.load(), stats.quota(), stats.cpu_of_quota()), (Some(4.5), Some(0.5), None));
    assert_eq!(notes, [""; 0]);
    let held: Vec<_> = (0..20).map_while(|_| inbound(&registry, R).ok()).collect();
    assert_eq!(held.len(), 11, "the load is above its limit");
    drop(files.with("sys/fs/cgroup/kubepods/pod7/cpu.max", "max 100000\n"));

    let files = Files::new("v1")
        .with("proc/self/cgroup", "4:cpu,cpuacct:/docker/f00\n")
        .with("sys/fs/cgroup/cpu,cpuacct/docker/f00/cpu.cfs_quota_us", "125000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/docker/f00/cpu.cfs_period_us", "100000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/docker/f00/cpuacct.usage", "1000000000\n");
    assert_eq!(files.registry().0.system().quota(), Some(1.25));
    let files = files.with("sys/fs/cgroup/cpu,cpuacct/docker/f00/cpu.cfs_quota_us", "-1\n");
    assert_eq!(files.registry().0.system().quota(), None);
}

/// H02.
#[test]
fn files_decide_whether_there_is_a_quota_and_names_of_groups_do_not() {
    // The same group with its name seen and not, and under names of several runtimes.
    let seen = [
        ("0::/", ""),
        ("0::/kubepods/besteffort/pod1/app", "kubepods/besteffort/pod1/app/"),
        ("0::/system.slice/containerd.service", "system.slice/containerd.service/"),
        ("0::/docker/0123abcd", "docker/0123abcd/"),
        // The namespace of another: what is mounted begins further down.
        ("0::/../../docker/0123abcd", ""),
        ("", ""),
    ];
    for (n, (membership, directory)) in seen.into_iter().enumerate() {
        let files = Files::new(&format!("names{n}"))
            .with("proc/self/cgroup", membership)
            .with(&format!("sys/fs/cgroup/{directory}cpu.max"), "200000 100000\n")
            .with(&format!("sys/fs/cgroup/{directory}cpu.stat"), "usage_usec 1\nuser_usec 1\n");
        assert_eq!(files.registry().0.system().quota(), Some(2.0), "{membership}");
    }
    // A name that says much, and no files.
    let files = Files::new("no-files")
        .with("proc/self/cgroup", "0::/docker/0123abcd\n")
        .with("proc/stat", "cpu  1 0 0 9 0 0 0 0\ncpu0 1 0 0 9 0 0 0 0\n");
    let (registry, notes) = files.registry();
    assert_eq!((registry.system().quota(), registry.system().load()), (None, None));
    assert_eq!(
        notes,
        [
            "system: no load average can be read here; limits on it are inactive",
            "system: no quota of processor time can be read here; figures are the machine's",
        ]
    );
    assert_eq!(inbound_passes(&registry, R, 100), 100);
}
