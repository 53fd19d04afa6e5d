//! The workspace that is built, and cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

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

/// What a run of cargo took, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    /// Of all its processes together, where the system tells.
    pub(crate) cpu: Option<f64>,
}

impl Workspace {
    /// Writes all that is built, over what a run before left there.
    pub(crate) fn write(plan: Plan) -> Result<Self, String> {
        let target = target_directory()?;
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
        let mut command = cargo();
        // As a user's would be: whoever measures may have it switched off.
        command.env_remove("CARGO_INCREMENTAL");
        command.current_dir(&self.folder).args(words).args(["--offline", "--target-dir"]).arg(&self.target);
        let (began, cpu_before) = (Instant::now(), cpu_of_children());
        run(&mut command)?;
        let wall = began.elapsed().as_secs_f64();
        let cpu = cpu_of_children().zip(cpu_before).map(|(after, before)| after - before);
        Ok(Took { wall, cpu })
    }

    /// A program that cargo built.
    pub(crate) fn program(&self, profile: &str, name: &str) -> PathBuf {
        self.target.join(profile).join(name).with_extension(std::env::consts::EXE_EXTENSION)
    }
}

/// The seconds that the processes have computed which this one has started, and those that they have, as Linux tells.
fn cpu_of_children() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces in it.
    let (_, after_name) = stat.rsplit_once(')')?;
    let ticks = after_name.split_whitespace().skip(13).take(2);
    // A hundredth of a second each, on every machine that Linux runs on.
    Some(ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// The version of the compiler.
pub(crate) fn rustc() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = run(Command::new(rustc).arg("--version"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a program to its end, and gives what it said. One that fails is an error, with what it said.
pub(crate) fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{command:?}: {}\n{said}{complained}", output.status))
}

/// That in which this program was built.
fn target_directory() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let target = program.ancestors().nth(2);
    Ok(target.ok_or("this program is not in a target directory")?.to_owned())
}

fn manifest(name: &str, program: &str, runtime: &Path) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n{program}\n\
         [dependencies]\nleap-runtime = {{ path = '{}' }}\n",
        runtime.display()
    )
}
