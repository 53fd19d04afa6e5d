//! What many loads leave on the heap.

use leap_benches::alloc;
use leap_runtime::{Mode, Outcome, Registry, Rule};

use crate::rules::{id, limit, patched, resources, set, set_under};

/// How many loads, of how many rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) n_rules: usize,
    /// After how many changes the heap is looked at.
    pub(crate) after: [usize; 3],
}

impl Plan {
    pub(crate) const FULL: Self = Self { n_rules: 10_000, after: [100, 300, 1_000] };
    pub(crate) const QUICK: Self = Self { n_rules: 1_000, after: [100, 300, 500] };
}

/// Bytes live, registry and all, after some changes of one kind, and after more.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) what: &'static str,
    pub(crate) bytes: [usize; 3],
}

/// By how much the last figure may be above the one before. There 16 versions and 256 events are kept already, so that
/// nothing may grow; the slack is for what hash maps and lists hold in reserve.
const SLACK: usize = 16 * 1024;

impl Memory {
    pub(crate) fn is_flat(&self) -> bool {
        self.bytes[2] <= self.bytes[1] + SLACK
    }
}

pub(crate) fn all(plan: Plan) -> Vec<Memory> {
    let names = resources(plan.n_rules / 2);
    let of = |what, change: &dyn Fn(&Registry, u32)| grown(what, plan, &names, change);
    let expected = "nothing is wrong with it";
    vec![
        of("loads, all rules changed", &|registry, version| {
            registry.load(set(&names, version)).expect(expected);
        }),
        of("loads, one rule changed", &|registry, version| {
            let mut rules = set(&names, 0);
            rules.remove(&id(321));
            registry.load(rules.named(id(321), &names[321], limit(version))).expect(expected);
        }),
        of("loads under ids that were never there before", &|registry, version| {
            registry.load(set_under(&names, &format!("{version:04}-"), 0)).expect(expected);
        }),
        of("loads of two sets in turn for other resources each", &|registry, version| {
            let (one, other) = names.split_at(names.len() / 2);
            let names = if version % 2 == 0 { one } else { other };
            registry.load(set(names, 0)).expect(expected);
        }),
        of("patches of one", &|registry, version| {
            registry.source("loaded").patch(&id(321), |_| Ok(patched(version))).expect(expected);
        }),
        of("promotions of one in shadow, and rollbacks", &|registry, version| {
            let loaded = registry.source("loaded");
            if version == 1 {
                let shadow = Rule::from(limit(7)).with_mode(Mode::Shadow);
                registry.load(loaded.rules().named(id(321), &names[321], shadow)).expect(expected);
            }
            if version % 2 == 1 {
                loaded.promote(&id(321)).expect(expected);
            } else {
                registry.rollback(registry.version() - 1).expect(expected);
            }
        }),
        of("loads that are refused", &|registry, version| {
            let wrong = set(&names[..100], version).flow("", limit(1));
            registry.load(wrong).expect_err("a name must not be empty");
        }),
    ]
}

fn grown(what: &'static str, plan: Plan, names: &[String], change: &dyn Fn(&Registry, u32)) -> Memory {
    let before = alloc::live_bytes();
    let registry = Registry::new();
    registry.load(set(names, 0)).expect("nothing is wrong with them");
    let mut version = 0;
    let bytes = plan.after.map(|after| {
        for _ in version as usize..after {
            version += 1;
            change(&registry, version);
            // Of the first names, so that what a resource makes with its first call is made early.
            let name = &names[version as usize % 64];
            registry.enter(name).expect("within the limit").end(Outcome::Success);
        }
        alloc::live_bytes() - before
    });
    Memory { what, bytes }
}
