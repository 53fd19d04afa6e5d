//! What the compiler says to whoever writes `#[guarded]`: where it must be silent, and every message, at its place.
//!
//! Messages are compared on one toolchain, as their wording is the compiler's as much as ours. After a change, run
//! with `TRYBUILD=overwrite` and read each changed `.stderr` as a user would.

use std::fs;
use std::path::Path;

use leap_tests::toolchain;

#[test]
fn guarded_functions_compile_without_a_word_and_mistakes_are_told_at_their_place() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    if toolchain::compares("messages") {
        cases.compile_fail("tests/ui/fail/*.rs");
    }
}

/// The lines of the attribute's documentation that show a message are messages that a test has seen.
#[test]
fn the_gallery_of_mistakes_shows_what_the_compiler_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let documentation = fs::read_to_string(root.join("../leap-macros/src/lib.rs")).unwrap();
    let gallery =
        documentation.split("/// # Mistakes").nth(1).unwrap().split("/// # What it does not").next().unwrap();
    let shown: Vec<&str> = gallery
        .lines()
        .filter_map(|line| line.strip_prefix("/// "))
        .filter(|line| ["error", "= note"].iter().any(|start| line.starts_with(start)))
        .collect();
    assert!(shown.len() > 10, "{shown:?}");
    let stderr = fs::read_dir(root.join("tests/ui/fail")).unwrap().map(|file| file.unwrap().path());
    let messages: String = stderr
        .filter(|path| path.extension().is_some_and(|extension| extension == "stderr"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for message in shown {
        assert!(messages.contains(message), "nobody has seen `{message}`");
    }
}
