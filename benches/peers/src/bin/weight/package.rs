//! The packages in the target directory, and what cargo says of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use leap_benches::processes::{self, Took};

use crate::contenders::Contender;

/// As a user would have it, and the program as it would be shipped.
const PROFILE: &str = "[profile.release]\nstrip = true\n";

/// A package in a folder, with a workspace and a target directory of its own.
#[derive(Debug)]
pub(crate) struct Package {
    folder: PathBuf,
}

/// A way to build.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    Debug,
    Release,
}

impl Package {
    /// Writes it, over what a run before left there, and fetches what it depends on, in the versions of our lock file
    /// where that has them.
    pub(crate) fn write(contender: &Contender) -> Result<Self, String> {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
        // Not the name of what it depends on.
        let name = format!("weigh-{}", contender.name.replace(" + ", "-").replace(' ', "-"));
        let package = Self { folder: processes::target_directory()?.join("weight").join(&name) };
        let runtime = ours.join("../../leap-runtime").display().to_string();
        let dependencies = contender.dependencies.replace("{leap-runtime}", &runtime);
        package.write_file(
            "Cargo.toml",
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[workspace]\n\n\
                 [dependencies]\n{dependencies}\n{PROFILE}"
            ),
        )?;
        let lock = ours.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).map_err(|error| format!("`{}`: {error}", lock.display()))?;
        package.write_file("Cargo.lock", &lock)?;
        // The library needs all that the program needs, and is nothing itself.
        package.write_file("src/lib.rs", "")?;
        package.write_file("src/main.rs", contender.program)?;
        processes::run(&mut package.cargo(&["fetch"]))?;
        Ok(package)
    }

    fn write_file(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        let folder = path.parent().expect("a file is in a folder");
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("`{}` cannot be written: {error}", path.display()))
    }

    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = processes::cargo();
        // Dependencies are never built incrementally; ours, which lies in a folder, would be.
        command.env("CARGO_INCREMENTAL", "0").current_dir(&self.folder).args(words);
        command
    }

    fn offline(&self, words: &[&str]) -> Command {
        let mut command = self.cargo(words);
        command.arg("--offline").arg("--target-dir").arg(self.target());
        command
    }

    fn target(&self) -> PathBuf {
        self.folder.join("target")
    }

    /// All that it depends on, on this system, by name and version; what its macros need too.
    pub(crate) fn crates(&self) -> Result<BTreeSet<String>, String> {
        let words = ["tree", "--offline", "--edges", "normal", "--prefix", "none", "--no-dedupe"];
        let output = processes::run(&mut self.cargo(&words))?;
        Ok(named(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Builds all that it depends on, from nothing.
    pub(crate) fn build_dependencies(&self, build: Build) -> Result<Took, String> {
        match fs::remove_dir_all(self.target()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("`{}` cannot be removed: {error}", self.target().display()));
            }
            _ => {}
        }
        processes::timed(&mut self.offline(match build {
            Build::Debug => &["build", "--lib"],
            Build::Release => &["build", "--lib", "--release"],
        }))
    }

    /// Builds the program, runs it, and gives its size and what it said.
    pub(crate) fn program(&self) -> Result<(u64, String), String> {
        processes::run(&mut self.offline(&["build", "--release"]))?;
        let folder = self.target().join("release");
        let name = self.folder.file_name().expect("its folder has its name");
        let program = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let about = fs::metadata(&program).map_err(|error| format!("`{}`: {error}", program.display()))?;
        let output = processes::run(&mut Command::new(&program))?;
        Ok((about.len(), String::from_utf8_lossy(&output.stdout).trim().to_owned()))
    }
}

/// The crates of a tree as cargo prints it without its branches, but for the first, which is the root.
fn named(tree: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().skip(1).filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_counts_once_for_each_version() {
        let tree = "\
root v0.0.0 (/somewhere)
leap-macros v0.1.0 (proc-macro) (/somewhere)
syn v3.0.1
syn v2.0.9
syn v3.0.1 (*)
";
        let crates = ["leap-macros v0.1.0", "syn v2.0.9", "syn v3.0.1"].map(str::to_owned);
        assert_eq!(named(tree), BTreeSet::from(crates));
        assert_eq!(named("plain v0.0.0 (/somewhere)\n"), BTreeSet::new());
    }
}
