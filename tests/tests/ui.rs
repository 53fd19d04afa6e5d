//! What the compiler says to whoever writes `#[guarded]`: where it must be silent, and every message, at its place.
//!
//! Messages are compared on one toolchain, as their wording is the compiler's as much as ours. After a change, run
//! with `TRYBUILD=overwrite` and read each changed `.stderr` as a user would.

use std::process::Command;

/// The toolchain that the README names.
const TOOLCHAIN: &str = "rustc 1.95.0 ";

#[test]
fn guarded_functions_compile_without_a_word_and_mistakes_are_told_at_their_place() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("a compiler is running this test");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if version.starts_with(TOOLCHAIN) {
        cases.compile_fail("tests/ui/fail/*.rs");
    } else {
        println!("skipped: messages are compared on {TOOLCHAIN}only, and this is {version}");
    }
}
