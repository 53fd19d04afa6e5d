//! Sentinel's recorded answers, put to leap: see `conformance/README.md`.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leap_runtime::{
    Behavior, BreakerRule, Entry, FlowRule, IsolationRule, ManualClock, Outcome, Precision, Registry, Rule,
    RuleSet, Timestamp,
};
use leap_tests::json::{Result, field, list, number, optional, small, text, whole};
use serde_json::Value;

/// Every case has a registry of its own, so this is always a resource that nobody has called.
const RESOURCE: &str = "guarded";
/// Virtual time begins at a multiple of 60 s.
const START: Timestamp = Timestamp::from_millis(60_000);

#[test]
fn leap_answers_as_sentinel_did() {
    let directory = directory();
    let outcome = replay_directory(&directory).unwrap_or_else(|error| panic!("{error}"));
    print!("{outcome}");
    assert!(
        outcome.files.iter().any(FileReport::is_built),
        "{} holds nothing to replay",
        directory.display()
    );
    let differences = outcome.differences();
    assert!(
        differences.is_empty(),
        "{} answers differ from Sentinel's, the first of them:\n{}",
        differences.len(),
        differences[..differences.len().min(10)].join("\n")
    );
}

#[test]
fn a_wrong_answer_is_a_difference_that_names_its_place() {
    let case = r#"{"case":"made-up","rule":{"kind":"flow","behavior":"reject","qps":1.0},"arrival_deltas_ms":[0,1,1000],"pass":"111"}"#;
    let report = replay_file("flow_reject.jsonl", case).unwrap();
    let [difference] = report.differences.as_slice() else { panic!("{report}") };
    assert_eq!(difference, "flow_reject.jsonl, case made-up, answer 1: expected 1, got 0");
    assert_eq!((report.cases, report.answers), (1, 3));
}

#[test]
fn a_line_that_cannot_be_read_is_told_with_its_number() {
    let error = replay_file("concurrency.jsonl", "\n{\"case\":").unwrap_err();
    assert!(error.starts_with("concurrency.jsonl, line 2: "), "{error}");
    let no_rule = replay_file("breaker.jsonl", r#"{"case":"x","events":[]}"#);
    assert_eq!(no_rule.unwrap_err(), "breaker.jsonl, line 1: there is no `rule`");
    let other_rule = replay_file("breaker.jsonl", r#"{"case":"x","rule":{"kind":"flow"},"events":[]}"#);
    assert_eq!(other_rule.unwrap_err(), "breaker.jsonl, line 1: a rule of kind `flow` is none of `breaker`");
    let short = r#"{"case":"x","rule":{"kind":"flow","behavior":"reject","qps":1},"arrival_deltas_ms":[0,1],"pass":"1"}"#;
    assert_eq!(
        replay_file("flow_reject.jsonl", short).unwrap_err(),
        "flow_reject.jsonl, line 1: 2 calls, 1 answers"
    );
}

#[test]
fn a_file_of_another_kind_is_listed_and_not_passed_over() {
    let report = replay_file("flow_throttle.jsonl", "{}\n{}\n").unwrap();
    assert!(!report.is_built());
    assert_eq!(report.to_string(), "flow_throttle.jsonl              2 cases  not built yet");
}

#[test]
fn a_missing_directory_is_an_error() {
    let error = replay_directory(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(error.starts_with("/nowhere/at/all cannot be read: "), "{error}");
}

fn directory() -> PathBuf {
    std::env::var_os("LEAP_CONFORMANCE_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance"), PathBuf::from)
}

/// What came of a directory.
#[derive(Debug)]
struct Report {
    files: Vec<FileReport>,
}

impl Report {
    fn differences(&self) -> Vec<&str> {
        self.files.iter().flat_map(|file| file.differences.iter().map(String::as_str)).collect()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.iter().try_for_each(|file| writeln!(f, "{file}"))
    }
}

/// What came of a file.
#[derive(Debug)]
struct FileReport {
    name: String,
    cases: usize,
    answers: usize,
    differences: Vec<String>,
    replay: Option<Replay>,
}

impl FileReport {
    fn is_built(&self) -> bool {
        self.replay.is_some()
    }
}

impl Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<30} {:>3} cases  ", self.name, self.cases)?;
        if self.is_built() {
            write!(f, "{:>6} answers  {:>4} differences", self.answers, self.differences.len())
        } else {
            f.write_str("not built yet")
        }
    }
}

/// Puts one case to leap.
type Replay = fn(&Value, &mut Answers) -> Result<()>;

fn replay_of(name: &str) -> Option<Replay> {
    match name {
        "flow_reject.jsonl" => Some(flow_reject),
        "breaker.jsonl" => Some(breaker),
        "concurrency.jsonl" => Some(concurrency),
        "stats.jsonl" => Some(stats),
        _ => None,
    }
}

fn replay_directory(directory: &Path) -> Result<Report> {
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", directory.display());
    let mut paths = vec![];
    for file in fs::read_dir(directory).map_err(unreadable)? {
        let path = file.map_err(unreadable)?.path();
        if path.file_name().is_some_and(|name| name != "README.md") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = vec![];
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        files.push(replay_file(&name, &text)?);
    }
    Ok(Report { files })
}

fn replay_file(name: &str, text: &str) -> Result<FileReport> {
    let replay = replay_of(name);
    let mut report = FileReport { name: name.to_owned(), cases: 0, answers: 0, differences: vec![], replay };
    for (line, json) in text.lines().enumerate().filter(|(_, json)| !json.trim().is_empty()) {
        report.cases += 1;
        let Some(replay) = replay else { continue };
        let mut answers = Answers::default();
        let case = replay_case(json, replay, &mut answers)
            .map_err(|error| format!("{name}, line {}: {error}", line + 1))?;
        report.answers += answers.compared;
        let place = |difference| format!("{name}, case {case}, {difference}");
        report.differences.extend(answers.differences.into_iter().map(place));
    }
    Ok(report)
}

fn replay_case(json: &str, replay: Replay, answers: &mut Answers) -> Result<String> {
    let case: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    replay(&case, answers)?;
    text(field(&case, "case")?).map(str::to_owned)
}

/// The answers of one case as they are compared.
#[derive(Debug, Default)]
struct Answers {
    compared: usize,
    differences: Vec<String>,
}

impl Answers {
    /// `index` is the place of the call or event in its case.
    fn compare<T: PartialEq + Display + ?Sized>(&mut self, index: usize, expected: &T, got: &T) {
        self.compared += 1;
        if expected != got {
            self.differences.push(format!("answer {index}: expected {expected}, got {got}"));
        }
    }
}

/// A resource of its own, guarded by one rule.
struct Bench {
    clock: ManualClock,
    registry: Registry,
    running: HashMap<u64, Entry>,
}

impl Bench {
    fn new(rule: impl Into<Rule>) -> Result<Self> {
        let clock = ManualClock::at(START);
        let registry = Registry::builder().clock(clock.clone()).second_buckets(2).build();
        registry.load(RuleSet::new().rule(RESOURCE, rule)).map_err(|error| error.to_string())?;
        Ok(Self { clock, registry, running: HashMap::new() })
    }

    fn go_to(&self, t: &Value) -> Result<()> {
        self.clock.set(START.saturating_add(Duration::from_millis(whole(t)?)));
        Ok(())
    }

    /// `enter`, `exit` and `fail`; what was answered, where something was.
    fn act(&mut self, what: &str, id: u64) -> Result<Option<&'static str>> {
        match what {
            "enter" => Ok(Some(match self.registry.enter(RESOURCE) {
                Ok(entry) => {
                    self.running.insert(id, entry);
                    "pass"
                }
                Err(_) => "block",
            })),
            "exit" | "fail" => {
                // Where leap blocked a call that passed, that was the difference; its end is none.
                if let Some(entry) = self.running.remove(&id) {
                    entry.end(if what == "exit" { Outcome::Success } else { Outcome::Exception });
                }
                Ok(None)
            }
            other => Err(format!("an event `{other}` is unknown")),
        }
    }
}

fn flow_reject(case: &Value, answers: &mut Answers) -> Result<()> {
    let bench = Bench::new(flow_rule(field(case, "rule")?)?)?;
    let deltas = list(field(case, "arrival_deltas_ms")?)?;
    let batch = optional(case, "batch").map(list).transpose()?;
    let expected = text(field(case, "pass")?)?;
    for (what, n) in [("answers", expected.len()), ("batches", batch.map_or(deltas.len(), <[_]>::len))] {
        if n != deltas.len() {
            return Err(format!("{} calls, {n} {what}", deltas.len()));
        }
    }
    for (i, (delta, expected)) in deltas.iter().zip(expected.chars()).enumerate() {
        bench.clock.advance(Duration::from_millis(whole(delta)?));
        let permits = batch.map_or(Ok(1), |batch| small(&batch[i]))?;
        let got = match bench.registry.enter_with(RESOURCE).permits(permits).enter() {
            Ok(entry) => {
                entry.end(Outcome::Success);
                '1'
            }
            Err(_) => '0',
        };
        answers.compare(i, &expected, &got);
    }
    Ok(())
}

fn breaker(case: &Value, answers: &mut Answers) -> Result<()> {
    let mut bench = Bench::new(breaker_rule(field(case, "rule")?)?)?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, id, answer, state] = list(event)? else {
            return Err(format!("event {i} has not five parts"));
        };
        bench.go_to(t)?;
        let got = bench.act(text(what)?, whole(id)?)?.unwrap_or("done");
        let seen = bench.registry.stats(RESOURCE).ok_or("no statistics")?;
        let [breaker] = seen.breakers() else { return Err("there is not one breaker".to_owned()) };
        let expected = format!("{} {}", text(answer)?, text(state)?);
        answers.compare(i, &expected, &format!("{got} {}", breaker.state().to_string().replace('-', "_")));
    }
    Ok(())
}

fn concurrency(case: &Value, answers: &mut Answers) -> Result<()> {
    let rule = of_kind(field(case, "rule")?, "concurrency")?;
    let mut bench = Bench::new(IsolationRule::new(small(field(rule, "max")?)?))?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, id, answer] = list(event)? else { return Err(format!("event {i} has not four parts")) };
        bench.go_to(t)?;
        if let Some(got) = bench.act(text(what)?, whole(id)?)? {
            answers.compare(i, text(answer)?, got);
        }
    }
    Ok(())
}

fn stats(case: &Value, answers: &mut Answers) -> Result<()> {
    let mut bench = Bench::new(flow_rule(field(case, "rule")?)?)?;
    for (i, event) in list(field(case, "events")?)?.iter().enumerate() {
        let [t, what, rest @ ..] = list(event)? else { return Err(format!("event {i} has no time")) };
        bench.go_to(t)?;
        match (text(what)?, rest) {
            ("query", [figures]) => {
                let expected = Figures::recorded(figures)?;
                answers.compare(i, &expected, &Figures::of(&bench.registry)?);
            }
            (what, [id, answer @ ..]) => {
                let got = bench.act(what, whole(id)?)?;
                if let (Some(got), [answer]) = (got, answer) {
                    answers.compare(i, text(answer)?, got);
                }
            }
            (what, []) => return Err(format!("event {i}, `{what}`, has no more to it")),
        }
    }
    Ok(())
}

/// What a query reads.
#[derive(Debug, PartialEq)]
struct Figures {
    second: [u64; 4],
    minute: [u64; 4],
    /// Average and minimum, in whole ns; none where nothing completed.
    rt_ns: Option<[u64; 2]>,
    in_flight: u64,
    previous_second_passed: u64,
}

impl Figures {
    fn recorded(figures: &Value) -> Result<Self> {
        let figure = |name: &str| field(figures, name).and_then(whole);
        let span = |prefix: &str| -> Result<[u64; 4]> {
            let figure = |name: &str| figure(&format!("{prefix}{name}"));
            Ok([figure("pass")?, figure("block")?, figure("success")?, figure("exception")?])
        };
        let second = span("")?;
        let completed = second[2];
        let rt_ns = if completed == 0 {
            let none = (whole(field(figures, "avg_rt_ms")?)?, whole(field(figures, "min_rt_ms")?)?);
            if none != (0, 5_000) {
                return Err(format!("nothing completed, and response times of {none:?}"));
            }
            None
        } else {
            // The average is a fraction of whole ms. Its numerator is restored, because doubles of ns would be
            // rounded where our division truncates.
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            let sum_ms = (number(field(figures, "avg_rt_ms")?)? * completed as f64).round() as u64;
            Some([sum_ms * 1_000_000 / completed, figure("min_rt_ms")? * 1_000_000])
        };
        let (in_flight, previous) = (figure("concurrency")?, figure("previous_second_pass")?);
        Ok(Self { second, minute: span("minute_")?, rt_ns, in_flight, previous_second_passed: previous })
    }

    fn of(registry: &Registry) -> Result<Self> {
        let stats = registry.stats(RESOURCE).ok_or("no statistics")?;
        let [second, minute] = [stats.second(), stats.minute()]
            .map(|span| [span.passed(), span.blocked(), span.completed(), span.exception()]);
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // Sentinel's shortest response time is never under 1 ms; ours is what it was.
        let shortest = |min: Duration| min.max(Duration::from_millis(1));
        let rt_ns = stats.second().rt_avg().zip(stats.second().rt_min());
        let rt_ns = rt_ns.map(|(avg, min)| [ns(avg), ns(shortest(min))]);
        let (in_flight, previous_second_passed) = (stats.in_flight(), stats.previous_second_passed());
        Ok(Self { second, minute, rt_ns, in_flight, previous_second_passed })
    }
}

impl Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

fn flow_rule(rule: &Value) -> Result<FlowRule> {
    let rule = of_kind(rule, "flow")?;
    let behavior = text(field(rule, "behavior")?)?;
    if behavior != "reject" {
        return Err(format!("a flow rule that does `{behavior}` is none of `reject`"));
    }
    let number_or = |name, default| optional(rule, name).map_or(Ok(default), small);
    let (n_buckets, interval) = (number_or("samples", 2)?, number_or("interval_ms", 1_000)?);
    FlowRule::new(number(field(rule, "qps")?)?, Behavior::Reject)
        .and_then(|rule| rule.with_buckets(n_buckets))
        .and_then(|rule| rule.per(Duration::from_millis(interval.into())))
        .and_then(|rule| rule.with_precision(Precision::Sentinel))
        .map_err(|error| error.to_string())
}

fn breaker_rule(rule: &Value) -> Result<BreakerRule> {
    let rule = of_kind(rule, "breaker")?;
    let threshold = field(rule, "threshold")?;
    let millis = |name| field(rule, name).and_then(whole).map(Duration::from_millis);
    let recovery = Duration::from_secs(whole(field(rule, "recovery_s")?)?);
    let (min_calls, n_buckets) = (small(field(rule, "min_requests")?)?, small(field(rule, "samples")?)?);
    let window = millis("interval_ms")?;
    let breaker = match text(field(rule, "strategy")?)? {
        "slow_ratio" => BreakerRule::slow_ratio(millis("slow_rt_ms")?, number(threshold)?),
        "error_ratio" => BreakerRule::error_ratio(number(threshold)?),
        "error_count" => Ok(BreakerRule::error_count(small(threshold)?)),
        other => return Err(format!("a strategy `{other}` is unknown")),
    };
    breaker
        .and_then(|breaker| breaker.with_min_calls(min_calls))
        .and_then(|breaker| breaker.with_window(window, n_buckets))
        .and_then(|breaker| breaker.open_for(recovery))
        .map_err(|error| error.to_string())
}

fn of_kind<'a>(rule: &'a Value, kind: &str) -> Result<&'a Value> {
    let found = text(field(rule, "kind")?)?;
    if found == kind { Ok(rule) } else { Err(format!("a rule of kind `{found}` is none of `{kind}`")) }
}
