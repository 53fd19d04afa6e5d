//! The stack that a chain of functions needs.

use std::path::Path;
use std::process::Command;

use crate::cargo::Workspace;
use crate::chain;
use crate::source::Twin;

/// What a thread of the standard library has, and must do for 12 guarded functions.
pub(crate) const DEFAULT: u32 = 2 * 1024 * 1024;
/// Stacks are tried in steps of a page.
const STEP: u32 = 4 * 1024;
const MOST: u32 = 64 * 1024 * 1024;

/// Bytes that a kind of chain needs: its last function alone, and all twelve.
#[derive(Debug)]
pub(crate) struct Stack {
    pub(crate) kind: &'static str,
    pub(crate) is_debug: bool,
    pub(crate) alone: [u32; 2],
    pub(crate) twelve: [u32; 2],
}

impl Stack {
    /// Whether a thread has the stack for it. Where it has none for the plain functions, there is nothing to hold.
    pub(crate) fn is_within_budget(&self) -> bool {
        let [plain, guarded] = self.twelve;
        guarded <= DEFAULT || plain > DEFAULT
    }
}

pub(crate) fn all(workspace: &Workspace) -> Result<Vec<Stack>, String> {
    workspace.cargo(&["build", "--package", "chain"])?;
    let debug = workspace.program("debug", "chain");
    let release = std::env::current_exe().map_err(|error| format!("where this program is: {error}"))?;
    let mut all = Vec::new();
    for (program, is_debug) in [(&debug, true), (&release, false)] {
        let none = least(program, &chain::NONE)?;
        for kind in chain::KINDS {
            let needed = |depth: &str| -> Result<[u32; 2], String> {
                let [plain, guarded] = Twin::BOTH.map(|twin| least(program, &[kind, twin.name(), depth]));
                Ok([plain? - none, guarded? - none])
            };
            all.push(Stack { kind, is_debug, alone: needed("1")?, twelve: needed("12")? });
        }
    }
    Ok(all)
}

/// The smallest stack that will do.
fn least(program: &Path, words: &[&str]) -> Result<u32, String> {
    let will_do = |bytes: u32| {
        let output = Command::new(program).arg("--chain").args(words).arg(bytes.to_string()).output();
        output
            .map(|output| output.status.success())
            .map_err(|error| format!("`{}`: {error}", program.display()))
    };
    if !will_do(MOST)? {
        return Err(format!(
            "`{} --chain {}` fails on a stack of {MOST} bytes",
            program.display(),
            words.join(" ")
        ));
    }
    let (mut too_small, mut enough) = (0, MOST / STEP);
    while too_small + 1 < enough {
        let middle = too_small.midpoint(enough);
        if will_do(middle * STEP)? {
            enough = middle;
        } else {
            too_small = middle;
        }
    }
    Ok(enough * STEP)
}
