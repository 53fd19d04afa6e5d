//! Crates that use leap as strangers do, each built twice from one source: its functions plain, and guarded.
//!
//! The crates are in `fixtures`, a workspace of their own, whose lock file holds the versions of leap's own, so that
//! they build wherever leap has been built. They share a target folder, in which leap is compiled once.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the tests themselves")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use leap_tests::toolchain;
use serde_json::Value;

/// The features of the two crates that are made of one. With a catalogue, expansions are all that they can be.
const PLAIN: &str = "catalog";
const GUARDED: &str = "catalog,guarded";

#[test]
fn guarded_functions_compile_and_behave_as_plain_ones_in_every_edition_and_under_every_name() {
    let of_plain = tests(PLAIN);
    assert_eq!(tests(GUARDED), of_plain);
    assert!(of_plain.len() >= 80, "{} tests", of_plain.len());
}

/// The tests of all crates that have some, by name, each of which passes.
fn tests(twin: &str) -> Vec<String> {
    let crates = ["edition-2018", "edition-2021", "edition-2024", "hygiene", "renamed"];
    let packages = crates.iter().flat_map(|name| ["--package", name]);
    let output = run(cargo("test").arg("--lib").args(packages).args(["--features", twin]));
    let mut passed: Vec<String> = text(&output.stdout)
        .lines()
        .filter_map(|line| Some(line.strip_suffix(" ... ok")?.to_owned()))
        .collect();
    passed.sort();
    passed
}

/// Lints that do not say of a guarded function what they say of the plain one, and why they cannot.
const LESS: [(&str, &str); 17] = [
    // The function is another one.
    ("clippy::missing_const_for_fn", "a guarded function cannot be `const`"),
    ("clippy::unnecessary_wraps", "a blocked call is an `Err`, even if the body knows none"),
    ("clippy::unused_async", "a guarded function awaits its body"),
    ("clippy::unused_self", "what is taken by value is dropped with the body"),
    ("clippy::large_futures", "it is told with the size of the guarded future"),
    // The body is in a closure, behind a `match`, and these do not look there.
    ("clippy::needless_pass_by_ref_mut", "looks at the function's own body"),
    ("clippy::needless_pass_by_value", "looks at the function's own body"),
    ("clippy::needless_question_mark", "looks at the last expression only"),
    ("clippy::only_used_in_recursion", "looks at the function's own body"),
    ("clippy::unwrap_in_result", "looks at the function's own body"),
    ("clippy::missing_errors_doc", "looks at the last expression of what makes a future"),
    ("unconditional_recursion", "looks at the function's own body"),
    ("clippy::large_stack_frames", "it is told where the body begins, not at the name"),
    (
        "unused_assignments",
        "an argument that is overwritten unread is *assigned*, not *passed*, and without its `mut`",
    ),
    // The signature is written twice.
    ("clippy::needless_lifetimes", "the return type, with its lifetimes, is also written in the body"),
    // A compiler hands `///` to attributes as `#[doc]`.
    ("clippy::doc_lazy_continuation", "looks at comments"),
    ("clippy::empty_line_after_doc_comments", "looks at comments"),
];

/// Lints that say something of a guarded function that they do not say of the plain one, and why.
const MORE: [(&str, &str); 5] = [
    ("clippy::empty_line_after_outer_attr", "see `empty_line_after_doc_comments`"),
    ("clippy::large_futures", "as above"),
    ("clippy::large_stack_frames", "as above"),
    ("clippy::large_types_passed_by_value", "an argument that is taken apart has a name"),
    ("unused_assignments", "as above"),
];

#[test]
fn lints_say_of_guarded_functions_what_they_say_of_plain_ones() {
    if !toolchain::compares("lints") {
        return;
    }
    let (plain, guarded) = (diagnostics(PLAIN), diagnostics(GUARDED));
    let lints: BTreeSet<&str> = plain.iter().map(|found| &*found.lint).collect();
    assert!(lints.len() >= 140, "{} lints found something", lints.len());
    assert_eq!(excess(&plain, &guarded, &LESS), "", "of the plain twin only");
    assert_eq!(excess(&guarded, &plain, &MORE), "", "of the guarded twin only");
}

/// One word of the compiler's or clippy's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Diagnostic {
    /// Where it begins: file, line, column.
    place: (String, u64, u64),
    lint: String,
    message: String,
    /// All of it, as it is shown.
    rendered: String,
}

/// What clippy says of the crate whose functions are full of sins, in the order of the source.
fn diagnostics(twin: &str) -> Vec<Diagnostic> {
    let output = run(cargo("clippy")
        .args(["--package", "lints", "--message-format", "json"])
        .args(["--features", twin]));
    let messages = text(&output.stdout).lines().filter_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["reason"] == "compiler-message").then(|| line["message"].clone())
    });
    let mut found: Vec<Diagnostic> = messages.filter_map(|message| diagnostic(&message)).collect();
    found.sort();
    found
}

/// A diagnostic of a lint; the compiler's "143 warnings emitted" is none.
fn diagnostic(message: &Value) -> Option<Diagnostic> {
    let lint = message["code"]["code"].as_str()?.to_owned();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let spans = message["spans"].as_array().unwrap();
    let span = spans.iter().find(|span| span["is_primary"] == true)?;
    let number = |name: &str| span[name].as_u64().unwrap();
    Some(Diagnostic {
        place: (text(&span["file_name"]), number("line_start"), number("column_start")),
        lint,
        message: text(&message["message"]),
        rendered: text(&message["rendered"]),
    })
}

/// What is `found` and not in `twin`, as it is shown, but for what is excepted; exceptions for nothing are told, too.
fn excess(found: &[Diagnostic], twin: &[Diagnostic], excepted: &[(&str, &str)]) -> String {
    let key = |found: &Diagnostic| (found.place.clone(), found.lint.clone(), found.message.clone());
    let mut rest: Vec<_> = twin.iter().map(key).collect();
    let mut unused: BTreeSet<&str> = excepted.iter().map(|(lint, _)| *lint).collect();
    let mut excess = Vec::new();
    for found in found {
        if let Some(at) = rest.iter().position(|other| *other == key(found)) {
            rest.swap_remove(at);
        } else if excepted.iter().any(|(lint, _)| *lint == found.lint) {
            unused.remove(&*found.lint);
        } else {
            excess.push(found.rendered.clone());
        }
    }
    excess.extend(unused.iter().map(|lint| format!("{lint} needs no exception\n")));
    excess.concat()
}

#[test]
fn the_crates_are_built_with_the_versions_of_the_workspace() {
    let ours = locked(&fixtures().join("../../Cargo.lock"));
    let theirs = locked(&fixtures().join("Cargo.lock"));
    let others: Vec<&String> = theirs.difference(&ours).collect();
    let advice = "copy Cargo.lock to tests/fixtures, and there run `cargo metadata --offline`, which takes out the rest";
    assert_eq!(others, Vec::<&String>::new(), "{advice}");
    assert!(theirs.iter().any(|package| package.starts_with("syn ")), "{theirs:?}");
}

/// The packages of a lock file that come from elsewhere, as `name version checksum`.
fn locked(file: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(file).unwrap();
    let packages = text.split("[[package]]").skip(1).filter_map(|package| {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        Some(format!("{} {} {}", field("name")?, field("version")?, field("checksum")?))
    });
    packages.collect()
}

/// A command of cargo's over the fixtures, which asks no registry and touches no lock file.
fn cargo(command: &str) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .arg(command)
        .args(["--frozen", "--color", "never", "--target-dir"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures"))
        .current_dir(fixtures())
        // Flags for leap are none for strangers.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0")
        .stdin(Stdio::null());
    cargo
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("cargo is running this test");
    let shown = || format!("{command:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}", shown());
    output
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}
