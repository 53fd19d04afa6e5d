//! The toolchain that builds leap here.

use std::process::Command;

/// The one that the README names. Wording, and much of what is linted, is the compiler's, so it is compared on this one.
pub const TOOLCHAIN: &str = "rustc 1.95.0 ";

/// Whether `what` can be compared: on any other toolchain it is said that it is not.
///
/// # Panics
///
/// If the compiler that is running the tests does not say its version.
pub fn compares(what: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("a compiler is running this test");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let is_this = version.starts_with(TOOLCHAIN);
    if !is_this {
        #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
        {
            println!("skipped: {what} are compared on {TOOLCHAIN}only, and this is {version}");
        }
    }
    is_this
}
