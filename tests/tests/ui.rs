//! What the compiler says to whoever writes `#[guarded]`: where it must be silent, and every message, at its place.
//!
//! Messages are compared on one toolchain, as their wording is the compiler's as much as ours. After a change, run
//! with `TRYBUILD=overwrite` and read each changed `.stderr` as a user would.

use leap_tests::toolchain;

#[test]
fn guarded_functions_compile_without_a_word_and_mistakes_are_told_at_their_place() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    if toolchain::compares("messages") {
        cases.compile_fail("tests/ui/fail/*.rs");
    }
}
