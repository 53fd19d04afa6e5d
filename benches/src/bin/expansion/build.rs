//! How long it takes to build the twins.

use leap_benches::processes::Took;

use crate::cargo::Workspace;
use crate::options::Plan;
use crate::source::Twin;

/// A way to build them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    Debug,
    Check,
    Release,
}

impl Build {
    const ALL: [Self; 3] = [Self::Debug, Self::Check, Self::Release];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Debug => "cargo build",
            Self::Check => "cargo check",
            Self::Release => "cargo build --release",
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Debug => &["build", "--lib"],
            Self::Check => &["check", "--lib"],
            Self::Release => &["build", "--lib", "--release"],
        }
    }

    fn profile(self) -> &'static str {
        if self == Self::Release { "release" } else { "dev" }
    }

    /// A release is built anew as a whole.
    fn is_incremental(self) -> bool {
        self != Self::Release
    }

    fn rounds(self, plan: Plan) -> usize {
        match self {
            Self::Debug => plan.debug_rounds,
            Self::Check => plan.check_rounds,
            Self::Release => plan.release_rounds,
        }
    }
}

/// What both twins took, round by round.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) build: Build,
    /// Whether all was built, or a crate in which one body had changed.
    pub(crate) is_clean: bool,
    pub(crate) rounds: Vec<[Took; 2]>,
}

/// Builds the twins in turns: who is first in one round is second in the next.
pub(crate) fn times(workspace: &Workspace, plan: Plan) -> Result<Vec<Times>, String> {
    let mut all = Vec::new();
    for build in Build::ALL {
        // What they depend on is built here, if it is not there.
        for twin in Twin::BOTH {
            workspace.cargo(&words(build, twin))?;
        }
        let (mut clean, mut changed) = (Vec::new(), Vec::new());
        for round in 0..build.rounds(plan) {
            let (mut of_clean, mut of_changed) = ([Took::default(); 2], [Took::default(); 2]);
            let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
            for index in order {
                let twin = Twin::BOTH[index];
                workspace.cargo(&["clean", "--package", twin.name(), "--profile", build.profile()])?;
                of_clean[index] = workspace.cargo(&words(build, twin))?;
                if build.is_incremental() {
                    workspace.write_module(twin, plan.modules / 2, 1)?;
                    of_changed[index] = workspace.cargo(&words(build, twin))?;
                    workspace.write_module(twin, plan.modules / 2, 0)?;
                }
            }
            clean.push(of_clean);
            changed.push(of_changed);
        }
        all.push(Times { build, is_clean: true, rounds: clean });
        if build.is_incremental() {
            all.push(Times { build, is_clean: false, rounds: changed });
        }
    }
    Ok(all)
}

fn words(build: Build, twin: Twin) -> Vec<&'static str> {
    let mut words = build.words().to_vec();
    words.extend(["--package", twin.name()]);
    words
}
