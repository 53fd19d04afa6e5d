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

/// That a program without options ends well, and has printed these lines in this order, among others.
fn assert_prints(program: &str, lines: &[&str]) {
    let output = run(program, &[]);
    let (printed, complaints) = (text(&output.stdout), text(&output.stderr));

    assert!(output.status.success() && complaints.is_empty(), "{complaints}");
    let mut printed_lines = printed.lines();
    for line in lines {
        assert!(
            printed_lines.any(|printed| printed == *line),
            "no line `{line}`, or too early, in\n{printed}"
        );
    }
}

#[test]
fn a_cold_resource_gets_a_third_of_its_limit_and_all_of_it_when_it_is_warm() {
    assert_prints(
        env!("CARGO_BIN_EXE_warm_up"),
        &[
            "second  offered  passed  blocked  limit of the moment, and a mark per two that passed",
            "     0      125      33       92     33  #################",
            "     5      125      44       81     44  ######################",
            "    10      125      83       42     83  ##########################################",
            "    11      125     100       25    100  ##################################################",
            "    14        0       0        0      -",
            "    17      125      79       46     79  ########################################",
            "    18      125     100       25    100  ##################################################",
            "    33      125      33       92     33  #################",
            "1354 passed, 1396 blocked",
        ],
    );
}

#[test]
fn throttled_calls_start_a_tenth_of_a_second_apart_and_a_burst_goes_first() {
    assert_prints(
        env!("CARGO_BIN_EXE_throttle"),
        &[
            "a sync loop",
            "     1        0       0      0",
            "     2        0     100    100",
            "     6      400     500    100",
            "async calls",
            "     0        8        8        0           0          0 ms  ########",
            "     1       20        6       14           0        500 ms  ######",
            "     5       20       10        5           5        450 ms  ##########",
            "     6        0        5        0           0        500 ms  #####",
            "async calls, with a burst of 10",
            "     1       20       15        5           0        500 ms  ###############",
        ],
    );
}

#[test]
fn one_user_floods_a_search_and_no_other_notices() {
    assert_prints(
        env!("CARGO_BIN_EXE_hot_parameter"),
        &[
            "     1     4 /   4     8 /   8    50 /  50     5 /   5  ###",
            "     2     5 /   5    10 /  10    40 /  40    10 / 200  #####",
            "     4     5 /   5    10 /  10    50 / 100    10 / 500  #####",
            "        the top 3 of 4 values of hot_parameter::search/hot/0:",
            "           mallory   500 permits asked for",
            "               vip   100 permits asked for",
            "               bob    10 permits asked for",
            "     6     4 /   4     8 /   8    40 /  40     5 /   5  ###",
        ],
    );
}

#[test]
fn a_busy_machine_is_held_to_what_gets_through_and_nobody_is_refused_when_it_is_over() {
    assert_prints(
        env!("CARGO_BIN_EXE_system"),
        &[
            "     2      150     150          6    40 ms     150        0          6    40 ms  0.60       6.0",
            "     5      300     300        301   836 ms     247       53         19    75 ms  1.00      18.9",
            "     7      300     300        505  1511 ms     248       52         18    75 ms  1.00      18.9",
            "     9      150     150        191  1725 ms     150        0          6    40 ms  0.62       6.0",
            "    11      150     150          6    40 ms     150        0          6    40 ms  0.60       6.0",
        ],
    );
}

#[test]
fn entrances_and_origins_have_limits_and_figures_of_their_own() {
    assert_prints(
        env!("CARGO_BIN_EXE_entrance"),
        &[
            "rules: 3 added, 0 changed, 0 kept, 0 removed",
            "     1    20 / 20     5 /  5     5 /  5     0 / 10      20 /  20  ##########",
            "     2    20 / 40     5 /  5     5 / 25     0 / 10      30 / 100  ###############",
            "     3    20 / 20     5 / 25     5 /  5     0 / 10      30 / 100  ###############",
            "calls              passed   blocked exceptions in flight",
            "jobs                  260         0        140         0",
            "  report.row          260         0        140         0",
            "    stock.read        120       140          0         0",
            "shops                 122        92          0         0",
            "  orders.create       122        92          0         0",
            "    stock.read        122         0          0         0",
            "orders.create   passed  blocked  of which by authority",
            "  app               80       20                      0",
            "  crawler            0       32                     32",
        ],
    );
}

#[test]
fn a_limit_that_is_changed_under_load_holds_at_once_and_no_change_is_a_burst() {
    assert_prints(
        env!("CARGO_BIN_EXE_reload"),
        &[
            "     1     100      300            100    400                                  ##########",
            "     2     200      200            200    400  file: 200: version 1            ####################",
            "     4     100      300            200    400  patched to 50: version 2        ##########",
            "     5      50      350             50    400                                  #####",
            "    12     300      100            300    400  refused: 1 mistake              ##############################",
            "    15     100      300            200    400  file: nothing: version 7        ##########",
            "  version 6: rollback to version 1: 0 added, 1 changed, 0 removed",
        ],
    );
}

#[test]
fn a_candidate_in_shadow_foretells_what_it_does_when_it_is_promoted() {
    assert_prints(
        env!("CARGO_BIN_EXE_shadow"),
        &[
            "     1      40       60        100          30%          30         40           0%  ####################",
            "     3      40       60        100          30%          30         40         100%  ####################",
            "rules: 0 added, 2 changed, 1 kept, 0 removed",
            "     6      70       30        100          60%           0         70         100%  ###################################",
            "     8      70       30        100          60%           0         70           0%  ###################################",
            "    10      40       60        100          30%          30         40           0%  ####################",
        ],
    );
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
