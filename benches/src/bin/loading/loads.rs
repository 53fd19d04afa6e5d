//! What loading itself takes, while nobody calls.

use std::hint::black_box;
use std::time::Instant;

use leap_runtime::{Registry, RuleSet};

use crate::rules::{N_RULES, id, limit, patched, resources, set, set_under};

/// A load of the table.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    /// Prepares everything, and tells how many milliseconds the load alone took, so many times.
    pub(crate) run: fn(n: usize) -> Vec<f64>,
}

/// What a load took, in milliseconds, sorted.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) name: &'static str,
    pub(crate) ms: Vec<f64>,
}

impl Taken {
    pub(crate) fn median(&self) -> f64 {
        self.ms[self.ms.len() / 2]
    }

    pub(crate) fn max(&self) -> f64 {
        self.ms[self.ms.len() - 1]
    }
}

pub(crate) const ALL: [Load; 13] = [
    Load { name: "build a set of 10 000", run: build },
    Load { name: "clone a set of 10 000", run: clone },
    Load { name: "load 10 000, the first time", run: first },
    Load { name: "load 10 000, all changed", run: all_changed },
    Load { name: "load 10 000, under other ids", run: other_ids },
    Load { name: "load 10 000, the same again", run: same },
    Load { name: "load 10 000, one changed", run: one_changed },
    Load { name: "patch one of 10 000", run: patch },
    Load { name: "roll 10 000 back, all changed", run: rollback },
    Load { name: "load 1 000 patterns, 10 000 resources", run: globs },
    Load { name: "load 10 000 for one resource", run: one_resource },
    Load { name: "load 10 000 for one resource, other ids", run: other_ids_of_one_resource },
    Load { name: "patch one of 10 000 for one resource", run: patch_of_one_resource },
];

pub(crate) fn all(n: usize) -> Vec<Taken> {
    let taken = |Load { name, run }: &Load| {
        let mut ms = run(n);
        ms.sort_by(f64::total_cmp);
        Taken { name, ms }
    };
    ALL.iter().map(taken).collect()
}

/// Milliseconds that `act` takes. What it returns is dropped when the clock has been read.
pub(crate) fn timed<T>(act: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    let result = black_box(act());
    let ms = start.elapsed().as_secs_f64() * 1e3;
    drop(result);
    ms
}

fn times(n: usize, mut act: impl FnMut(u32) -> f64) -> Vec<f64> {
    (0..).take(n).map(&mut act).collect()
}

fn names() -> Vec<String> {
    resources(N_RULES / 2)
}

/// A registry with a set of version 0.
fn loaded(names: &[String]) -> Registry {
    let registry = Registry::new();
    load(&registry, set(names, 0));
    registry
}

fn load(registry: &Registry, rules: RuleSet) -> f64 {
    timed(|| registry.load(rules).expect("nothing is wrong with them"))
}

fn build(n: usize) -> Vec<f64> {
    let names = names();
    times(n, |version| timed(|| set(&names, version)))
}

fn clone(n: usize) -> Vec<f64> {
    let set = set(&names(), 0);
    times(n, |_| timed(|| set.clone()))
}

fn first(n: usize) -> Vec<f64> {
    let names = names();
    times(n, |_| load(&Registry::new(), set(&names, 0)))
}

fn all_changed(n: usize) -> Vec<f64> {
    let names = names();
    let registry = loaded(&names);
    times(n, |version| load(&registry, set(&names, version + 1)))
}

fn other_ids(n: usize) -> Vec<f64> {
    let names = names();
    let registry = loaded(&names);
    times(n, |version| load(&registry, set_under(&names, &version.to_string(), 0)))
}

fn same(n: usize) -> Vec<f64> {
    let names = names();
    let registry = loaded(&names);
    times(n, |_| load(&registry, set(&names, 0)))
}

fn one_changed(n: usize) -> Vec<f64> {
    let names = names();
    let registry = loaded(&names);
    times(n, |version| {
        let mut rules = set(&names, 0);
        rules.remove(&id(4_321));
        load(&registry, rules.named(id(4_321), &names[4_321], limit(version + 1)))
    })
}

fn patch(n: usize) -> Vec<f64> {
    let registry = loaded(&names());
    patch_all(&registry, n)
}

fn patch_all(registry: &Registry, n: usize) -> Vec<f64> {
    let source = registry.source("loaded");
    times(n, |version| timed(|| source.patch(&id(4_321), |_| Ok(patched(version + 1))).expect("it is there")))
}

fn rollback(n: usize) -> Vec<f64> {
    let names = names();
    let registry = loaded(&names);
    load(&registry, set(&names, 1));
    times(n, |_| timed(|| registry.rollback(registry.version() - 1).expect("the one before is kept")))
}

fn globs(n: usize) -> Vec<f64> {
    let registry = Registry::new();
    for i in 0..N_RULES {
        drop(registry.enter(&format!("orders.of.{:03}.customer.{i}", i % 1_000)));
    }
    let set = |version| {
        let pattern = |i| format!("orders.of.{i:03}.*");
        (0..1_000).fold(RuleSet::new(), |set, i| set.flow(pattern(i), limit(version)))
    };
    times(n, |version| load(&registry, set(version)))
}

fn of_one_resource(prefix: &str) -> RuleSet {
    let named = |i| format!("{prefix}{}", id(i));
    (0..N_RULES).fold(RuleSet::new(), |set, i| set.named(named(i), "orders.create", limit(0)))
}

fn one_resource(n: usize) -> Vec<f64> {
    times(n, |_| load(&Registry::new(), of_one_resource("")))
}

fn other_ids_of_one_resource(n: usize) -> Vec<f64> {
    let registry = Registry::new();
    load(&registry, of_one_resource(""));
    times(n, |version| load(&registry, of_one_resource(&version.to_string())))
}

fn patch_of_one_resource(n: usize) -> Vec<f64> {
    let registry = Registry::new();
    load(&registry, of_one_resource(""));
    patch_all(&registry, n)
}
