//! Sentinel's recorded answers, put to leap: see `conformance/README.md`.

mod bench;
mod calls;
mod events;
mod report;
mod rules;
mod stats;

use std::path::{Path, PathBuf};

use report::{FileReport, Replay, replay_directory, replay_file};

/// What puts the cases of a file to leap; none if nothing does yet.
fn replay_of(file: &str) -> Option<Replay> {
    match file {
        "flow_reject.jsonl"
        | "flow_warm_up.jsonl"
        | "flow_throttle.jsonl"
        | "flow_warm_up_throttle.jsonl" => Some(calls::flow),
        "param.jsonl" => Some(calls::param),
        "breaker.jsonl" => Some(events::breaker),
        "concurrency.jsonl" => Some(events::concurrency),
        "relations.jsonl" => Some(events::relations),
        "authority.jsonl" => Some(events::authority),
        "system.jsonl" => Some(events::system),
        "stats.jsonl" => Some(stats::stats),
        _ => None,
    }
}

/// The recordings that come with leap.
fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}

fn directory() -> PathBuf {
    std::env::var_os("LEAP_CONFORMANCE_DIR").map_or_else(recordings, PathBuf::from)
}

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
fn every_file_that_comes_with_leap_is_replayed() {
    let outcome = replay_directory(&recordings()).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> =
        outcome.files.iter().filter(|file| file.is_built()).map(|file| file.name.as_str()).collect();
    let expected = [
        "authority.jsonl",
        "breaker.jsonl",
        "concurrency.jsonl",
        "flow_reject.jsonl",
        "flow_throttle.jsonl",
        "flow_warm_up.jsonl",
        "flow_warm_up_throttle.jsonl",
        "param.jsonl",
        "relations.jsonl",
        "stats.jsonl",
        "system.jsonl",
    ];
    assert_eq!((names.as_slice(), outcome.files.len()), (expected.as_slice(), expected.len()));
}

/// Each case is answered rightly but for its last answer.
#[test]
fn a_wrong_answer_is_a_difference_that_names_its_place() {
    let reject = r#""rule":{"kind":"flow","behavior":"reject","qps":1.0}"#;
    let throttle = r#""rule":{"kind":"flow","behavior":"throttle","qps":10.0,"max_queue_ms":100}"#;
    let param = r#""rule":{"kind":"param","behavior":"throttle","qps":10,"duration_s":1,"burst":0,"max_queue_ms":200}"#;
    let system = r#""rule":{"kind":"system","inbound_qps":1.0}"#;
    let authority = r#""rule":{"kind":"authority","deny":"a"}"#;
    let related = r#""rule":{"kind":"flow","relation":"associated","qps":1.0}"#;
    let origin = r#""rules":[{"origin":"vip","qps":1.0},{"origin":"other","qps":0.0}]"#;
    let entrance = r#""rule":{"kind":"flow","entrance":"front","qps":0.0}"#;
    for (file, rule, answers, n, expected) in [
        (
            "flow_reject.jsonl",
            reject,
            r#""arrival_deltas_ms":[0,1000,1],"pass":"111""#,
            3,
            "answer 2: expected pass, got block",
        ),
        (
            "flow_throttle.jsonl",
            throttle,
            r#""arrival_deltas_ms":[0,0,0],"pass":"110","wait_ns":[0,99999999,-1]"#,
            3,
            "answer 1: expected pass after 99.999999ms, got pass after 100ms",
        ),
        (
            "param.jsonl",
            param,
            r#""arrival_deltas_ms":[0,0,0,0],"keys":[1,1,2,1],"pass":"1111","wait_ms":[0,100,0,200]"#,
            4,
            "answer 3: expected pass after 200ms, got block",
        ),
        (
            "system.jsonl",
            system,
            r#""events":[[0,"enter",0,"inbound0","pass"],[1,"exit",0],[1,"enter",1,"outbound","pass"],[1,"enter",2,"inbound1","pass"]]"#,
            3,
            "answer 3: expected pass, got block",
        ),
        (
            "authority.jsonl",
            authority,
            r#""origins":[["a","block"],["b","pass"],["","block"]]"#,
            3,
            "answer 2: expected block, got pass",
        ),
        (
            "relations.jsonl",
            related,
            r#""events":[[0,"guarded","pass"],[0,"related","pass"],[0,"guarded","pass"]]"#,
            3,
            "answer 2: expected pass, got block",
        ),
        (
            "relations.jsonl",
            origin,
            r#""events":[[0,"vip","pass"],[0,"x","block"],[0,"","block"]]"#,
            3,
            "answer 2: expected block, got pass",
        ),
        (
            "relations.jsonl",
            entrance,
            r#""events":[[0,"back","pass"],[0,"front","pass"]]"#,
            2,
            "answer 1: expected pass, got block",
        ),
    ] {
        let report = replay_file(file, &format!(r#"{{"case":"made-up",{rule},{answers}}}"#)).unwrap();
        let [difference] = report.differences.as_slice() else { panic!("{report}") };
        assert_eq!(difference, &format!("{file}, case made-up, {expected}"));
        assert_eq!((report.cases, report.answers), (1, n), "{file}");
    }
}

#[test]
fn a_wrong_state_of_a_breaker_or_a_wrong_figure_is_a_difference_too() {
    let breaker = r#"{"case":"x","rule":{"kind":"breaker","strategy":"error_count","threshold":0,"min_requests":1,"samples":1,"interval_ms":1000,"recovery_s":1},"events":[[0,"enter",0,"pass","closed"],[1,"fail",0,"done","closed"]]}"#;
    let report = replay_file("breaker.jsonl", breaker).unwrap();
    assert_eq!(report.differences, ["breaker.jsonl, case x, answer 1: expected done closed, got done open"]);

    let stats = r#"{"case":"x","rule":{"kind":"flow","behavior":"reject","qps":1},"events":[[0,"enter",0,"pass"],[5,"exit",0],[5,"query",{"pass":1,"block":0,"success":1,"exception":0,"avg_rt_ms":6.0,"min_rt_ms":5,"concurrency":0,"minute_pass":1,"minute_block":0,"minute_success":1,"minute_exception":0,"previous_second_pass":0}]]}"#;
    let report = replay_file("stats.jsonl", stats).unwrap();
    let [difference] = report.differences.as_slice() else { panic!("{report}") };
    assert!(difference.contains("rt_ns: Some([6000000, 5000000])"), "{difference}");
    assert!(difference.contains("rt_ns: Some([5000000, 5000000])"), "{difference}");
}

#[test]
fn a_line_that_cannot_be_read_is_told_with_its_number() {
    let error = replay_file("concurrency.jsonl", "\n{\"case\":").unwrap_err();
    assert!(error.starts_with("concurrency.jsonl, line 2: "), "{error}");
    for (file, case, expected) in [
        ("breaker.jsonl", r#""events":[]"#, "there is no `rule`"),
        (
            "breaker.jsonl",
            r#""rule":{"kind":"flow"},"events":[]"#,
            "a rule of kind `flow` is none of `breaker`",
        ),
        (
            "flow_reject.jsonl",
            r#""rule":{"kind":"flow","behavior":"hope","qps":1},"arrival_deltas_ms":[0],"pass":"1""#,
            "a behavior `hope` is unknown",
        ),
        (
            "flow_reject.jsonl",
            r#""rule":{"kind":"flow","behavior":"reject","qps":1},"arrival_deltas_ms":[0,1],"pass":"1""#,
            "2 calls, 1 answers",
        ),
        (
            "flow_throttle.jsonl",
            r#""rule":{"kind":"flow","behavior":"throttle","qps":1,"max_queue_ms":9},"arrival_deltas_ms":[0],"pass":"1","wait_ns":[-1]"#,
            "an answer of `1` with a wait of -1",
        ),
        (
            "flow_throttle.jsonl",
            r#""rule":{"kind":"flow","behavior":"throttle","qps":1,"max_queue_ms":9},"arrival_deltas_ms":[0],"pass":"1""#,
            "a rule by which calls wait, and no waits",
        ),
        ("system.jsonl", r#""rule":{"kind":"system"},"events":[]"#, "a rule of `system` limits nothing"),
        ("concurrency.jsonl", r#""rule":{"kind":"concurrency","max":1},"events":[]"#, "nothing is answered"),
        (
            "concurrency.jsonl",
            r#""rule":{"kind":"concurrency","max":1},"events":[[0,"linger",0,"pass"]]"#,
            "an event `linger` is unknown",
        ),
    ] {
        let error = replay_file(file, &format!(r#"{{"case":"x",{case}}}"#)).unwrap_err();
        assert_eq!(error, format!("{file}, line 1: {expected}"));
    }
}

#[test]
fn a_file_of_another_kind_is_listed_and_not_passed_over() {
    let report = replay_file("cluster_of_moons.jsonl", "{}\n{}\n").unwrap();
    assert!(!report.is_built());
    assert_eq!(report.to_string(), "cluster_of_moons.jsonl           2 cases  not built yet");
}

#[test]
fn a_missing_directory_is_an_error() {
    let error = replay_directory(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(error.starts_with("/nowhere/at/all cannot be read: "), "{error}");
}
