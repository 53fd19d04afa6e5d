//! The workspace that is built, and cargo.

use std::fs;
use std::path::{Path, PathBuf};

use leap_benches::processes::{self, Took};

use crate::options::Plan;
use crate::source::{self, Twin};

/// The number of the module that the program has itself, beside those of the library.
const ANCHOR: usize = 100_000;

/// As in our own workspace, lest what is there be built once more. It adds nothing that is loaded into memory.
const PROFILE: &str = "[profile.release]\ndebug = \"line-tables-only\"\n";

/// A workspace in a folder below the target directory in which it is built, which is that of this program: what it depends
/// on may be there already.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Writes all that is built, over what a run before left there.
    pub(crate) fn write(plan: Plan) -> Result<Self, String> {
        let target = processes::target_directory()?;
        let ours = Path::new(env!("CARGO_MANIFEST_DIR"));
        let runtime = ours.join("../leap-runtime");
        let workspace = Self { folder: target.join("expansion"), target };
        let members = Twin::BOTH.map(Twin::name).join("\", \"");
        workspace.write_file(
            "Cargo.toml",
            &format!("[workspace]\nresolver = \"3\"\nmembers = [\"{members}\", \"chain\"]\n\n{PROFILE}"),
        )?;
        let lock = ours.join("../Cargo.lock");
        let lock = fs::read_to_string(&lock).map_err(|error| format!("`{}`: {error}", lock.display()))?;
        workspace.write_file("Cargo.lock", &lock)?;
        for twin in Twin::BOTH {
            let name = twin.name();
            let program = format!("[[bin]]\nname = \"call-{name}\"\npath = \"src/main.rs\"\n");
            workspace.write_file(&format!("{name}/Cargo.toml"), &manifest(name, &program, &runtime))?;
            workspace.write_file(&format!("{name}/src/lib.rs"), &source::library(plan.modules))?;
            workspace.write_file(&format!("{name}/src/main.rs"), &source::program(twin, plan.modules))?;
            let anchor = source::module(Twin::Guarded, ANCHOR, 0);
            workspace.write_file(&format!("{name}/src/anchor.rs"), &anchor)?;
            for module in 0..plan.modules {
                workspace.write_module(twin, module, 0)?;
            }
        }
        let chain = ours.join("src/bin/expansion/chain.rs");
        let program = format!("[[bin]]\nname = \"chain\"\npath = '{}'\n", chain.display());
        workspace.write_file("chain/Cargo.toml", &manifest("chain", &program, &runtime))?;
        Ok(workspace)
    }

    pub(crate) fn write_module(&self, twin: Twin, module: usize, edition: usize) -> Result<(), String> {
        let name = format!("{}/src/module{module}.rs", twin.name());
        self.write_file(&name, &source::module(twin, module, edition))
    }

    fn write_file(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(name);
        let folder = path.parent().expect("a file is in a folder");
        // What is as it was is not built again.
        if fs::read_to_string(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("`{}` cannot be written: {error}", path.display()))
    }

    /// Runs cargo, and tells how long it took.
    pub(crate) fn cargo(&self, words: &[&str]) -> Result<Took, String> {
        let mut command = processes::cargo();
        // As a user's would be: whoever measures may have it switched off.
        command.env_remove("CARGO_INCREMENTAL");
        command.current_dir(&self.folder).args(words).args(["--offline", "--target-dir"]).arg(&self.target);
        processes::timed(&mut command)
    }

    /// A program that cargo built.
    pub(crate) fn program(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name).with_extension(std::env::consts::EXE_EXTENSION)
    }
}

fn manifest(name: &str, program: &str, runtime: &Path) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n{program}\n\
         [dependencies]\nleap-runtime = {{ path = '{}' }}\n",
        runtime.display()
    )
}
