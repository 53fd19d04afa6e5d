use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::rule::{Precision, RuleKind};

/// A machine whose figures a test sets.
#[derive(Default)]
struct Machine(Mutex<SystemSample>);

impl SystemProbe for Machine {
    fn sample(&self) -> SystemSample {
        *self.0.lock().unwrap()
    }
}

/// A registry's system on virtual time.
struct Site {
    system: System,
    machine: Arc<Machine>,
    probe: Arc<dyn SystemProbe>,
}

const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

impl Site {
    fn new(rules: &[SystemRule]) -> Self {
        let machine = Arc::<Machine>::default();
        let probe: Arc<dyn SystemProbe> = machine.clone();
        let mut site = Self { system: System::default(), machine, probe };
        site.load(rules, 0);
        site
    }

    fn load(&mut self, rules: &[SystemRule], ms: u64) {
        let rules = rules.iter().enumerate();
        let rules =
            rules.map(|(position, rule)| (RuleId::new(None, RuleKind::System, position), rule.clone()));
        self.system = System::new(rules.collect(), &self.system, &self.probe, &|| at(ms));
        self.system.catch_up(&|| at(ms));
    }

    /// Sets the figures of the machine and samples them at once.
    fn figures(&self, sample: SystemSample, ms: u64) {
        *self.machine.0.lock().unwrap() = sample;
        self.system.sample(at(ms));
    }

    /// A call comes in, in the way of a plan: asked first, then admitted.
    fn enter(&self, n: u32, ms: u64) -> Result<Held, SystemRefusal<'_>> {
        if self.system.is_due(at(ms)) {
            self.system.sample_if_due(at(ms));
        }
        let asked = self.system.peek(n, at(ms), &|| at(ms));
        let admitted = self.system.admit(n, at(ms), &|| at(ms));
        assert_eq!(asked.is_ok(), admitted.is_ok(), "what is asked and what is done agree");
        // The one that was asked names the first reason in order.
        asked.and(admitted)
    }

    fn end(&self, held: Held, rt_ms: u64, ms: u64) {
        self.system.end(held, rt_ms * 1_000_000, Outcome::Success, at(ms));
    }

    /// So many calls in flight.
    fn with_in_flight(&self, n: usize, ms: u64) -> Vec<Held> {
        (0..n).map(|_| self.enter(1, ms).unwrap()).collect()
    }
}

fn cpu(share: f64) -> SystemSample {
    SystemSample::default().with_cpu_of_quota(share)
}

fn refused(refusal: Result<Held, SystemRefusal<'_>>) -> (Dimension, f64, f64) {
    let Exceeded { dimension, observed, limit, .. } = refusal.unwrap_err().exceeded;
    (dimension, observed, limit)
}

#[test]
fn without_rules_nothing_is_asked_or_counted_or_sampled() {
    let site = Site::new(&[]);
    assert!(!site.system.counts() && !site.system.is_due(at(5_000)));
    assert_eq!(site.enter(1, 0).unwrap().0, 0);
    assert_eq!(site.system.figures(at(0)), SystemStats::default());
    let off = Site::new(&[SystemRule::qps(0.0).unwrap().with_mode(Mode::Off)]);
    assert!(off.system.counts() && off.enter(1, 0).is_ok());
    assert_eq!(off.system.rules().len(), 1);
}

#[test]
fn the_last_call_of_the_second_passes_and_the_next_waits_for_it() {
    let site = Site::new(&[SystemRule::qps(3.0).unwrap()]);
    for ms in [100, 200, 999] {
        assert!(site.enter(1, ms).is_ok());
    }
    let refusal = site.enter(1, 1_099).unwrap_err();
    assert_eq!(refusal.until, Some(at(1_100)));
    assert_eq!(refusal.exceeded.to_string(), "the system's limit of 3 inbound calls per second is reached");
    assert!(site.enter(1, 1_100).is_ok());
    assert_eq!(refused(site.enter(2, 1_150)), (Dimension::Qps, 2.0, 3.0));
}

#[test]
fn the_last_call_in_flight_passes_and_the_next_does_not() {
    let site = Site::new(&[SystemRule::concurrency(3)]);
    let mut held = site.with_in_flight(3, 0);
    assert_eq!(refused(site.enter(1, 0)), (Dimension::Concurrency, 3.0, 3.0));
    site.end(held.pop().unwrap(), 5, 5);
    assert!(site.enter(2, 5).is_err() && site.enter(1, 5).is_ok());
    let none = Site::new(&[SystemRule::concurrency(0)]);
    assert!(none.enter(1, 0).is_err());
}

#[test]
fn sentinel_refuses_above_the_concurrency_and_so_lets_one_more_in() {
    let rule = SystemRule::concurrency(3).with_precision(Precision::Sentinel).unwrap();
    let site = Site::new(&[rule]);
    let _held = site.with_in_flight(4, 0);
    assert_eq!(refused(site.enter(1, 0)), (Dimension::Concurrency, 4.0, 3.0));
}

#[test]
fn an_average_at_the_limit_passes_and_one_above_it_does_not_until_it_has_left_the_second() {
    let site = Site::new(&[SystemRule::avg_rt(Duration::from_millis(30)).unwrap()]);
    let held = site.with_in_flight(3, 0);
    for (held, rt_ms) in held.into_iter().zip([20, 40, 33]) {
        site.end(held, rt_ms, rt_ms);
        if rt_ms == 40 {
            assert!(site.enter(1, 40).is_ok(), "30 ms on average");
        }
    }
    let (dimension, observed, limit) = refused(site.enter(1, 999));
    assert_eq!((dimension, limit, (observed * 1e3).round()), (Dimension::AvgRt, 0.03, 31.0));
    assert!(site.enter(1, 1_000).is_ok());
}

#[test]
fn a_busy_machine_lets_the_first_call_through_and_holds_calls_to_the_estimate() {
    let site = Site::new(&[SystemRule::cpu(0.8).unwrap()]);
    site.figures(cpu(0.95), 0);
    // No traffic yet.
    let first = site.enter(1, 0).unwrap();
    site.end(first, 100, 100);
    // 50 end in this bucket, the shortest in 100 ms: 100 a second · 0.1 s = 10.
    site.figures(cpu(0.5), 100);
    for held in site.with_in_flight(49, 100) {
        site.end(held, 150, 250);
    }
    let mut held = site.with_in_flight(5, 300);
    site.figures(cpu(0.95), 300);
    assert!((site.system.figures(at(300)).estimate() - 10.0).abs() < 1e-9);
    held.push(site.enter(1, 300).unwrap());
    held.extend(site.with_in_flight(4, 300));
    held.push(site.enter(1, 300).expect("10 are in flight, which is not more than 10"));
    let refusal = site.enter(1, 300).unwrap_err();
    assert_eq!(
        refusal.exceeded,
        Exceeded { dimension: Dimension::Cpu, observed: 0.95, limit: 0.8, in_flight: 11 }
    );
    assert_eq!(refusal.until, None);
    // One ends, and one gets in.
    site.end(held.pop().unwrap(), 100, 400);
    held.push(site.enter(1, 400).unwrap());
    assert!(site.enter(1, 400).is_err());
    site.figures(cpu(0.8), 450);
    assert!(site.enter(1, 450).is_ok(), "at the limit is not above it");
}

#[test]
fn one_call_may_always_be_found_in_flight_however_small_the_estimate() {
    let site = Site::new(&[SystemRule::load(4.0).unwrap()]);
    let first = site.enter(1, 0).unwrap();
    site.end(first, 1, 1);
    site.figures(SystemSample::default().with_load(4.01), 1);
    assert!(site.system.figures(at(1)).estimate() < 1.0);
    let _held = (site.enter(1, 1).unwrap(), site.enter(1, 1).unwrap());
    assert_eq!(refused(site.enter(1, 1)), (Dimension::Load, 4.01, 4.0));
}

#[test]
fn sentinel_refuses_every_call_while_the_cpu_is_above_and_none_for_load_without_others_in_flight() {
    let as_sentinel = |rule: SystemRule| rule.with_precision(Precision::Sentinel).unwrap();
    let site =
        Site::new(&[as_sentinel(SystemRule::cpu(0.8).unwrap()), as_sentinel(SystemRule::load(1.0).unwrap())]);
    site.figures(cpu(0.81), 0);
    assert_eq!(refused(site.enter(1, 0)), (Dimension::Cpu, 0.81, 0.8));
    site.figures(cpu(0.8).with_load(9.0), 0);
    assert!(site.enter(1, 0).is_ok());
}

#[test]
fn of_several_rules_the_lowest_of_each_dimension_holds_and_all_are_listed() {
    let rules = [
        SystemRule::cpu(0.9).unwrap(),
        SystemRule::cpu(0.7).unwrap(),
        SystemRule::qps(100.0).unwrap(),
        SystemRule::concurrency(50),
    ];
    let site = Site::new(&rules);
    let listed: Vec<_> = site.system.rules().iter().map(|(_, rule)| rule.clone()).collect();
    assert_eq!(listed, rules);
    let figures = site.system.figures(at(0));
    let effective: Vec<_> = figures
        .dimensions()
        .iter()
        .map(|seen| (seen.dimension(), seen.limit(), seen.rule().position()))
        .collect();
    assert_eq!(
        effective,
        [(Dimension::Qps, 100.0, 2), (Dimension::Concurrency, 50.0, 3), (Dimension::Cpu, 0.7, 1)]
    );
}

#[test]
fn a_figure_that_nobody_finds_makes_its_rule_inactive_and_shows_so() {
    let site = Site::new(&[SystemRule::load(0.0).unwrap(), SystemRule::cpu(0.0).unwrap()]);
    for ms in 0..20 {
        assert!(site.enter(1, ms * 500).is_ok());
    }
    let figures = site.system.figures(at(10_000));
    assert_eq!((figures.load(), figures.cpu_of_quota()), (None, None));
    assert!(figures.dimensions().iter().all(|dimension| !dimension.is_available()));
    let text = figures.to_string();
    assert!(text.contains("load: unavailable, so the limit of 0 is inactive (loaded/system/0)"), "{text}");
    assert_eq!(
        site.system.notes(at(10_000)),
        [
            "system: no load average can be read here; limits on it are inactive",
            "system: no quota of processor time can be read here; figures are the machine's",
        ]
    );
}

#[test]
fn nonsense_of_a_probe_is_ignored_and_counted() {
    let site = Site::new(&[SystemRule::cpu(0.8).unwrap()]);
    for (n, share) in (1..).zip([f64::NAN, f64::INFINITY, -1.0, 95.0]) {
        site.figures(cpu(share), 0);
        assert_eq!(site.system.figures(at(0)).ignored_samples(), n);
        assert!(site.with_in_flight(15, 0).into_iter().all(|held| held.0 == 1));
    }
}

#[test]
fn a_figure_is_shown_with_what_it_is_a_share_of() {
    let site = Site::new(&[SystemRule::cpu(0.8).unwrap()]);
    site.figures(cpu(0.9).with_quota(0.5), 0);
    let figures = site.system.figures(at(0));
    assert_eq!((figures.cpu_of_quota(), figures.quota()), (Some(0.9), Some(0.5)));
    assert_eq!(
        figures.to_string(),
        "system: load unavailable, cpu 0.90 of a quota of 0.5 processors; inbound: 0 in the last second, 0 in flight \
         (estimate 10.0)\n  cpu_of_quota: 0.9 of at most 0.8 (loaded/system/0)"
    );
    assert!(site.system.notes(at(0)).is_empty());
}

#[test]
fn the_machine_is_sampled_by_one_call_a_second_and_only_for_rules_on_it() {
    let site = Site::new(&[SystemRule::qps(9.0).unwrap()]);
    assert!(!site.system.is_due(at(99_000)));
    let site = Site::new(&[SystemRule::cpu(0.8).unwrap()]);
    assert!(site.system.is_due(at(0)));
    site.system.sample_if_due(at(0));
    assert!(!site.system.is_due(at(999)) && site.system.is_due(at(1_000)));
    site.system.sample(at(700));
    assert!(!site.system.is_due(at(1_699)) && site.system.is_due(at(1_700)));
}

#[test]
fn what_is_in_flight_and_was_let_through_outlives_a_reload() {
    let mut site = Site::new(&[SystemRule::concurrency(2), SystemRule::qps(3.0).unwrap()]);
    let mut held = site.with_in_flight(2, 0);
    site.load(&[SystemRule::concurrency(3), SystemRule::qps(3.0).unwrap()], 10);
    held.push(site.enter(1, 10).unwrap());
    assert_eq!(refused(site.enter(1, 10)).0, Dimension::Qps);
    site.load(&[SystemRule::concurrency(3)], 20);
    assert_eq!(refused(site.enter(1, 20)).0, Dimension::Concurrency);
    // Without rules nothing is counted; those that were counted in leave nevertheless.
    site.load(&[], 30);
    let uncounted = site.enter(1, 30).unwrap();
    held.drain(..).for_each(|held| site.end(held, 10, 40));
    site.end(uncounted, 10, 40);
    site.load(&[SystemRule::concurrency(1)], 50);
    assert_eq!(site.system.figures(at(50)).inbound_in_flight(), 0);
    assert!(site.enter(1, 50).is_ok());
}

#[test]
fn a_lower_limit_from_another_rule_counts_what_passed_under_the_one_before() {
    let as_sentinel = SystemRule::qps(2.0).unwrap().with_precision(Precision::Sentinel).unwrap();
    let mut site = Site::new(&[SystemRule::qps(3.0).unwrap()]);
    assert!(site.enter(1, 0).is_ok() && site.enter(1, 0).is_ok());
    for lower in [as_sentinel, SystemRule::qps(2.0).unwrap()] {
        site.load(&[SystemRule::qps(3.0).unwrap(), lower], 100);
        assert_eq!(site.enter(1, 100).unwrap_err().rule.position(), 1);
    }
}

#[test]
fn a_call_that_is_refused_or_given_back_or_cancelled_leaves_nothing_in_flight() {
    let site = Site::new(&[SystemRule::qps(2.0).unwrap(), SystemRule::concurrency(5)]);
    let first = site.enter(1, 0).unwrap();
    site.system.give_back(first);
    let second = site.enter(1, 0).unwrap();
    assert!(site.enter(1, 0).is_err());
    site.system.end(second, 7_000_000, Outcome::Cancelled, at(7));
    let figures = site.system.figures(at(7));
    assert_eq!((figures.inbound_in_flight(), figures.inbound_qps(), figures.avg_rt()), (0, 2, None));
}

/// Sentinel's recorded answers.
#[test]
fn every_recorded_answer_of_sentinel_is_given() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance/system.jsonl");
    let (mut compared, text) = (0, fs::read_to_string(file).unwrap());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let rule = &case["rule"];
        let number = |name: &str| rule.get(name).and_then(Value::as_f64);
        let rules: Vec<_> = [
            number("inbound_qps").map(|qps| SystemRule::qps(qps).unwrap()),
            rule.get("inbound_concurrency")
                .map(|max| SystemRule::concurrency(max.as_u64().unwrap().try_into().unwrap())),
            rule.get("avg_rt_ms")
                .map(|ms| SystemRule::avg_rt(Duration::from_millis(ms.as_u64().unwrap())).unwrap()),
        ]
        .into_iter()
        .flatten()
        .map(|rule| rule.with_precision(Precision::Sentinel).unwrap())
        .collect();
        let site = Site::new(&rules);
        let mut running = std::collections::HashMap::new();
        for event in case["events"].as_array().unwrap() {
            let (ms, id) = (event[0].as_u64().unwrap(), event[2].as_u64().unwrap());
            if event[1] == "exit" {
                if let Some((held, began)) = running.remove(&id) {
                    site.end(held, ms - began, ms);
                }
                continue;
            }
            if event[3].as_str().unwrap().starts_with("inbound") {
                let answer = site.enter(1, ms);
                let expected = event[4].as_str().unwrap();
                assert_eq!(
                    if answer.is_ok() { "pass" } else { "block" },
                    expected,
                    "{}: {event}",
                    case["case"]
                );
                compared += 1;
                if let Ok(held) = answer {
                    running.insert(id, (held, ms));
                }
            }
        }
    }
    assert!(compared > 500, "{compared} answers were compared");
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u32),
    End(usize, bool),
    GiveBack(usize),
    Busy(f64),
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let step = prop_oneof![
        5 => (1..4_u32).prop_map(Step::Enter),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(which, well)| Step::End(which, well)),
        1 => any::<usize>().prop_map(Step::GiveBack),
        1 => (0.0..1.2_f64).prop_map(Step::Busy),
    ];
    (prop_oneof![Just(0_u64), 1..20_u64, 200..600_u64], step)
}

proptest! {
    /// Against a plain list of what was let through, when, and for how long.
    #[test]
    fn no_limit_is_ever_exceeded_and_nobody_is_refused_without_a_reason(
        steps in prop::collection::vec(step(), 1..200),
        qps in 1..12_u32,
        max in 1..8_u32,
    ) {
        let rules = [SystemRule::qps(qps.into()).unwrap(), SystemRule::concurrency(max), SystemRule::cpu(0.8).unwrap()];
        let site = Site::new(&rules);
        let (mut now, mut busy) = (0, 0.0);
        let mut admitted: Vec<(u64, u32)> = vec![];
        let mut running: Vec<(Held, u64)> = vec![];
        // When each call ended, how long it took and what it held.
        let mut ended: Vec<(u64, u64, u32)> = vec![];
        site.figures(cpu(busy), now);
        for (later, step) in steps {
            now += later;
            match step {
                Step::Busy(share) => {
                    busy = share;
                    site.figures(cpu(busy), now);
                }
                Step::Enter(n) => {
                    // Nobody samples a machine that stands still.
                    site.figures(cpu(busy), now);
                    let taken: u32 = admitted.iter().filter(|(ms, _)| ms + 1_000 > now).map(|(_, n)| n).sum();
                    let in_flight: u32 = running.iter().map(|(held, _)| held.0).sum();
                    let first = (now / 500).saturating_sub(1) * 500;
                    let recent = || ended.iter().filter(|(ms, ..)| *ms >= first);
                    let of_bucket = |bucket| -> u32 {
                        recent().filter(|(ms, ..)| ms / 500 == bucket).map(|(.., n)| n).sum()
                    };
                    let fullest = of_bucket(now / 500).max(of_bucket(first / 500)).max(1);
                    let shortest_ms = recent().map(|(_, rt, _)| *rt).min().unwrap_or(5_000);
                    let is_above = u64::from(in_flight) * 1_000 > u64::from(fullest) * 2 * shortest_ms;
                    let overloaded = busy > 0.8 && in_flight > 1 && is_above;
                    let expected = if taken + n > qps {
                        Some(Dimension::Qps)
                    } else if in_flight + n > max {
                        Some(Dimension::Concurrency)
                    } else {
                        overloaded.then_some(Dimension::Cpu)
                    };
                    match site.enter(n, now) {
                        Ok(held) => {
                            prop_assert_eq!(None, expected);
                            admitted.push((now, n));
                            running.push((held, now));
                        }
                        Err(refusal) => prop_assert_eq!(Some(refusal.exceeded.dimension), expected),
                    }
                }
                Step::End(which, well) if !running.is_empty() => {
                    let (held, began) = running.swap_remove(which % running.len());
                    let n = held.0;
                    if well {
                        site.end(held, now - began, now);
                        ended.push((now, now - began, n));
                    } else {
                        site.system.end(held, 1, Outcome::Cancelled, at(now));
                    }
                }
                Step::GiveBack(which) if !running.is_empty() => {
                    let (held, _) = running.swap_remove(which % running.len());
                    site.system.give_back(held);
                }
                Step::End(..) | Step::GiveBack(_) => {}
            }
        }
        running.drain(..).for_each(|(held, began)| site.end(held, now - began, now));
        prop_assert_eq!(site.system.figures(at(now)).inbound_in_flight(), 0);
    }
}

#[test]
fn threads_never_exceed_a_limit_and_leave_nothing_behind() {
    let site = Site::new(&[SystemRule::qps(100.0).unwrap(), SystemRule::concurrency(3)]);
    let (inside, most) = (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut passed = 0;
                    for _ in 0..200 {
                        if let Ok(held) = site.system.admit(1, at(5), &|| at(5)) {
                            most.fetch_max(inside.fetch_add(1, relaxed) + 1, relaxed);
                            std::thread::yield_now();
                            inside.fetch_sub(1, relaxed);
                            site.end(held, 1, 5);
                            passed += 1;
                        }
                    }
                    passed
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(passed <= 100 && most.into_inner() <= 3, "{passed}");
    let figures = site.system.figures(at(5));
    assert_eq!((figures.inbound_in_flight(), figures.inbound_qps()), (0, passed as u64));
}
