//! The size of the twins' programs.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use leap_benches::processes;

use crate::cargo::Workspace;
use crate::source::Twin;

/// The bytes of a program in memory, by what they are.
pub(crate) type Parts = BTreeMap<&'static str, u64>;

/// Builds both programs, sees that they do the same, and measures them; none where programs are no ELF files.
pub(crate) fn both(workspace: &Workspace) -> Result<Option<[Parts; 2]>, String> {
    let mut said = Vec::new();
    let mut parts = Vec::new();
    for twin in Twin::BOTH {
        workspace.cargo(&["build", "--release", "--package", twin.name()])?;
        let program = workspace.program("release", &format!("call-{}", twin.name()));
        said.push(processes::run(&mut Command::new(&program))?.stdout);
        let file = fs::read(&program).map_err(|error| format!("`{}`: {error}", program.display()))?;
        parts.push(of_elf(&file));
    }
    if said[0] != said[1] {
        let [plain, guarded] =
            [0, 1].map(|index: usize| String::from_utf8_lossy(&said[index]).trim().to_owned());
        return Err(format!("the plain functions make {plain}, the guarded ones {guarded}"));
    }
    Ok(parts.into_iter().collect::<Option<Vec<_>>>().and_then(|parts| parts.try_into().ok()))
}

/// What part of a program a section is.
pub(crate) const CODE: &str = "code";
pub(crate) const CONSTANTS: &str = "constants";
pub(crate) const DATA: &str = "data";
pub(crate) const UNWINDING: &str = "unwinding";
pub(crate) const RELOCATIONS: &str = "relocations";
pub(crate) const ALL: [&str; 5] = [CODE, CONSTANTS, DATA, UNWINDING, RELOCATIONS];

fn part(section: &str) -> Option<&'static str> {
    let starts = |with: &[&str]| with.iter().any(|start| section.starts_with(start));
    Some(match section {
        _ if starts(&[".text"]) => CODE,
        _ if starts(&[".rodata", ".data.rel.ro"]) => CONSTANTS,
        _ if starts(&[".data", ".bss", ".tdata", ".tbss"]) => DATA,
        _ if starts(&[".eh_frame", ".gcc_except_table"]) => UNWINDING,
        _ if starts(&[".rela"]) => RELOCATIONS,
        _ => return None,
    })
}

/// Reads the table of sections of a 64-bit little-endian ELF file.
fn of_elf(file: &[u8]) -> Option<Parts> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, entry_size) = (number(file, 0x28, 8)?, number(file, 0x3a, 2)?);
    let (n, names) = (number(file, 0x3c, 2)?, number(file, 0x3e, 2)?);
    let header = |index: usize| file.get(table + index * entry_size..);
    let names = file.get(number(header(names)?, 0x18, 8)?..)?;
    let mut parts: Parts = ALL.iter().map(|part| (*part, 0)).collect();
    for index in 0..n {
        let header = header(index)?;
        let name = names.get(number(header, 0, 4)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        if let Some(part) = part(&String::from_utf8_lossy(name)) {
            *parts.entry(part).or_default() += number(header, 0x20, 8)? as u64;
        }
    }
    Some(parts)
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + size)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}
