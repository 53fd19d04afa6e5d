//! The map in ARCHITECTURE.md holds: a module names only modules above it.
#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy excuses only the tests themselves")]

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of leap-runtime, lowest first, as ARCHITECTURE.md lists them.
const RUNTIME: [&str; 34] = [
    "sync",
    "named",
    "seldom",
    "clock",
    "timer",
    "window",
    "key",
    "rule",
    "rulebook",
    "history",
    "blocked",
    "event",
    "node",
    "check",
    "current",
    "tree",
    "share",
    "context",
    "environment",
    "plans",
    "resource",
    "roster",
    "entry",
    "registry",
    "sources",
    "breakers",
    "callsite",
    "catalog",
    "__private",
    "limiter",
    "stats",
    "tracing",
    "guide",
    "lib",
];
const WINDOW: [&str; 5] = ["pass_log", "leap_array", "statistics", "histogram", "hot_leap_array"];
const MACROS: [&str; 6] = ["errors", "args", "model", "fallback", "expand", "lib"];

#[test]
fn no_module_of_the_runtime_names_a_later_one() {
    check("leap-runtime/src", "crate::", &RUNTIME);
}

#[test]
fn no_structure_of_the_window_names_a_later_one() {
    check("leap-runtime/src/window", "super::", &WINDOW);
}

#[test]
fn no_stage_of_the_macro_names_a_later_one() {
    check("leap-macros/src", "crate::", &MACROS);
}

#[test]
fn the_map_in_the_architecture_lists_every_module_in_order() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let map = text.split("```text").find(|block| block.contains("foundation")).expect("a map of the modules");
    let mut from = 0;
    for module in RUNTIME {
        let place = map[from..]
            .find(module)
            .unwrap_or_else(|| panic!("`{module}` is missing in the map, or too early"));
        from += place + module.len();
    }
}

fn check(folder: &str, prefix: &str, order: &[&str]) {
    let folder = root().join(folder);
    let mut seen = 0;
    for file in rust_files(&folder) {
        let module = module_of(&file, &folder);
        let Some(place) = order.iter().position(|known| *known == module) else {
            assert!(prefix == "super::", "`{module}` has no place in the order");
            continue;
        };
        seen += 1;
        let text = fs::read_to_string(&file).unwrap();
        for named in named_modules(&text, prefix) {
            if let Some(other) = order.iter().position(|known| *known == named) {
                assert!(other <= place, "{}: `{module}` names the later `{named}`", file.display());
            }
        }
    }
    assert!(seen >= order.len(), "{seen} files were read for {} modules", order.len());
}

/// The first path segments that follow `prefix` in the code, groups (`crate::{a, b::c}`) included.
fn named_modules(text: &str, prefix: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut named = vec![];
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{') {
            Some(group) => named.extend(firsts_of_group(group)),
            None => named.push(identifier(rest)),
        }
    }
    named
}

fn firsts_of_group(group: &str) -> Vec<String> {
    let (mut depth, mut firsts, mut is_first) = (1, vec![], true);
    let mut rest = group;
    while let Some(next) = rest.chars().next() {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => is_first = true,
            _ if depth == 1 && is_first && (next.is_alphanumeric() || next == '_') => {
                firsts.push(identifier(rest));
                is_first = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        rest = &rest[next.len_utf8()..];
    }
    firsts
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The top module that a file belongs to.
fn module_of(file: &Path, folder: &Path) -> String {
    let inside = file.strip_prefix(folder).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

#[test]
fn the_reader_of_use_lines_sees_groups_and_paths() {
    let text = "use crate::{\n    clock::Timestamp,\n    sync::{AtomicU64, Ordering::{self, *}}, };\nlet x = crate::rule::Rule; // crate::node";
    assert_eq!(named_modules(text, "crate::"), ["clock", "sync", "rule"]);
}
