//! The program whose calls are counted: `hot_path`, built here and now.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// A built `hot_path`.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// What compiled it, and for what.
    pub(crate) compiler: String,
}

impl Program {
    /// By the workspace's release profile. `cargo run` has built nothing but us, and what lies beside us may be old.
    pub(crate) fn build() -> Result<Self, String> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(changes_code) {
                cargo.env_remove(name);
            }
        }
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stderr(Stdio::inherit());
        cargo.args(["build", "--locked", "--release", "--package", "leap-benches", "--bin", "hot_path"]);
        cargo.arg("--message-format=json-render-diagnostics");
        let output = cargo.output().map_err(|error| format!("cargo cannot be run: {error}"))?;
        let path = output.status.success().then(|| executable(&String::from_utf8_lossy(&output.stdout)));
        let path = path.flatten().ok_or("`hot_path` cannot be built")?;
        let program = std::fs::read(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        let rustc =
            rustc(&program).ok_or_else(|| format!("`{}` does not say what built it", path.display()))?;
        Ok(Self { path, compiler: format!("rustc {rustc} for {}", target()) })
    }

    /// Where the profile of a row is kept: beside the program.
    pub(crate) fn profile(&self, row: &str) -> Result<PathBuf, String> {
        let folder = self.path.with_file_name("callgrind");
        std::fs::create_dir_all(&folder).map_err(|error| format!("`{}`: {error}", folder.display()))?;
        Ok(folder.join(file_name(row)))
    }
}

/// Whether a variable of the environment has cargo compile otherwise than the workspace says.
fn changes_code(variable: &str) -> bool {
    matches!(
        variable,
        "RUSTFLAGS" | "CARGO_ENCODED_RUSTFLAGS" | "CARGO_BUILD_RUSTFLAGS" | "CARGO_INCREMENTAL"
    ) || variable.starts_with("CARGO_PROFILE_RELEASE_")
}

/// The program that cargo says it has built.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut executables = messages.filter_map(|message| Some(message.get("executable")?.as_str()?.into()));
    executables.next()
}

/// The version of rustc that is written into a program.
fn rustc(program: &[u8]) -> Option<String> {
    const BEFORE: &[u8] = b"rustc version ";
    // The text of this constant stands in a program as well; behind it comes no version.
    let versions = program.windows(BEFORE.len()).zip(BEFORE.len()..).filter(|(window, _)| *window == BEFORE);
    let mut versions = versions.filter_map(|(_, end)| {
        let version = program.get(end..)?.split(|byte| *byte == 0).next()?;
        version.first()?.is_ascii_digit().then(|| String::from_utf8_lossy(version).into_owned())
    });
    // `1.95.0 (59807616e 2026-04-14)`, and where it stands in parentheses itself, one more.
    versions.next().map(|version| version.split_inclusive(')').next().unwrap_or_default().to_owned())
}

fn target() -> String {
    let environment = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{}-{}-{environment}", std::env::consts::ARCH, std::env::consts::OS)
}

fn file_name(row: &str) -> String {
    let name = row.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    format!("{name}.out")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{changes_code, executable, file_name, rustc};

    #[test]
    fn the_last_program_that_cargo_names_is_the_one() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"quanta"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"hot_path"},"executable":"/target/release/hot_path"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/target/release/hot_path")));
        assert_eq!(executable(r#"{"reason":"build-finished","success":false}"#), None);
    }

    #[test]
    fn a_program_says_which_compiler_built_it() {
        let bare = b"\x7fELF..rustc version \0..\0rustc version 1.95.0 (59807616e 2026-04-14)\0GCC: 12\0";
        let in_parentheses = b"\0clang LLVM (rustc version 1.95.0 (59807616e 2026-04-14))\0";
        for program in [bare.as_slice(), in_parentheses] {
            assert_eq!(rustc(program).as_deref(), Some("1.95.0 (59807616e 2026-04-14)"));
        }
        assert_eq!(rustc(b"\0rustc version 1.95.0-dev\0").as_deref(), Some("1.95.0-dev"));
        assert_eq!(rustc(b"\x7fELF"), None);
    }

    #[test]
    fn what_whoever_measures_has_set_for_compiling_is_left_out() {
        let names =
            ["RUSTFLAGS", "CARGO_PROFILE_RELEASE_LTO", "CARGO_TARGET_DIR", "RUSTUP_TOOLCHAIN", "PATH"];
        assert_eq!(names.map(changes_code), [true, true, false, false, false]);
    }

    #[test]
    fn a_row_has_a_file_of_a_plain_name() {
        assert_eq!(file_name("qps+slow exact"), "qps-slow-exact.out");
    }
}
