//! The programs as their users start them.

use std::net::TcpListener;
use std::process::{Command, Output};

use serde_json::Value;

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().expect("the program was built beside this test")
}

fn replay(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_replay"), args)
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).expect("the programs write UTF-8")
}

/// What `replay --json` says.
fn figures(args: &[&str]) -> Value {
    let output = replay(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn without_a_rule_every_call_passes() {
    let figures = figures(&["--rows", "500"]);

    assert_eq!(
        (&figures["calls"], &figures["passed"], &figures["blocked"]),
        (&500.into(), &500.into(), &0.into())
    );
}

#[test]
fn a_limit_holds_in_any_1000_ms_and_the_same_seed_ends_the_same() {
    for (precision, most) in [("exact", 10), ("strict", 10), ("sentinel", 20)] {
        let args = ["--seed", "4", "--qps", "10", "--precision", precision, "--buckets", "2"];
        let figures_once = figures(&args);
        let [calls, passed, blocked, most_passed] = ["calls", "passed", "blocked", "max_passed_in_1000_ms"]
            .map(|key| figures_once[key].as_u64().unwrap());

        assert_eq!(passed + blocked, calls);
        assert!(blocked > 0 && most_passed <= most, "{figures_once}");
        assert_eq!(figures(&args), figures_once);
    }
}

#[test]
fn calls_overlap_and_a_breaker_goes_by_how_long_they_run() {
    let figures = figures(&["--max-concurrency", "3", "--slow-rt-ms", "5"]);

    assert!(figures["blocked_by"]["isolation"].as_u64() > Some(0), "{figures}");
    assert!(figures["blocked_by"]["breaker"].as_u64() > Some(0), "{figures}");
    assert_eq!(figures["transitions"][0]["to"], "open");
}

#[test]
fn bad_rows_are_named_and_left_out() {
    let file = format!("{}/bad-rows.csv", env!("CARGO_TARGET_TMPDIR"));
    let rows = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,1,1\nsoon,1,1\n2023-11-16 18:17:04,1,2\n";
    std::fs::write(&file, rows).unwrap();
    let output = replay(&[&file]);

    assert!(output.status.success());
    assert_eq!(
        text(&output.stderr),
        format!("replay: {file}, line 3: `soon` is not a time like `2023-11-16 18:17:03.9799600`; skipped\n")
    );
    assert!(text(&output.stdout).contains("passed                    2\n"), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_done_is_one_line_on_stderr() {
    for (args, code, line) in [
        (
            &["nowhere.csv"][..],
            1,
            "replay: cannot read nowhere.csv: No such file or directory (os error 2)\n",
        ),
        (&["--qsp", "1"], 2, "replay: invalid option '--qsp' (`--help` lists the options)\n"),
        (
            &["--qps", "-1"],
            2,
            "replay: a limit of -1 is not a number of permits: it must be 0 or more, and finite (`--help` lists the \
             options)\n",
        ),
    ] {
        let output = replay(args);

        assert_eq!(text(&output.stderr), line);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), ""));
    }
}

#[test]
fn a_port_that_is_taken_is_one_line_on_stderr() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let output = run(env!("CARGO_BIN_EXE_storefront"), &["--port", &port.to_string()]);

    assert_eq!(
        text(&output.stderr),
        format!(
            "storefront: port {port} is taken; name another one with `--port`, or 0 for any that is free\n"
        )
    );
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
}
