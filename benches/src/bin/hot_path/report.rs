//! The tables, and the same as JSON.

use std::fmt;

use leap_benches::floor;
use leap_benches::measure::{ALLOCATION_CALLS, Plan, Setting};
use leap_benches::memory::Memory;
use serde_json::{Value, json};

use crate::allocations::Allocations;
use crate::rows::Row;

type Timing<'a> = leap_benches::measure::Timing<'a, Row>;

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) plan: Plan,
    pub(crate) timings: Vec<Timing<'a>>,
    pub(crate) allocations: Vec<Allocations>,
    pub(crate) memory: Vec<Memory>,
}

/// A bound on time, checked where its rows were measured.
struct Bound {
    what: &'static str,
    ratio: f64,
    at_most: f64,
}

impl Report<'_> {
    /// Whether no call allocates more than it may, and nothing takes more memory than promised.
    pub(crate) fn is_within_hard_budgets(&self) -> bool {
        !self.allocations.iter().any(Allocations::is_over) && !self.memory.iter().any(Memory::is_over)
    }

    fn timing(&self, name: &str, setting: Setting) -> Option<&Timing<'_>> {
        self.timings.iter().find(|timing| timing.row.name == name && timing.setting == setting)
    }

    fn floor_ratio(&self, timing: &Timing<'_>) -> Option<f64> {
        Some(timing.median() / self.timing(floor::NAME, timing.setting)?.median())
    }

    /// How much longer a call takes, by the medians.
    fn ratio(&self, (name, setting): (&str, Setting), (to, to_setting): (&str, Setting)) -> Option<f64> {
        Some(self.timing(name, setting)?.median() / self.timing(to, to_setting)?.median())
    }

    /// The budgets of time of which both rows were measured.
    fn bounds(&self) -> Vec<Bound> {
        use Setting::{OneThread, TwoOnTwo};
        let to_floor = |what, name, at_most| {
            let ratio = self.ratio((name, OneThread), (floor::NAME, OneThread))?;
            Some(Bound { what, ratio, at_most })
        };
        let same = |what, name, to| {
            let ratio = self.ratio((name, OneThread), (to, OneThread))?;
            Some(Bound { what, ratio, at_most: 1.1 })
        };
        let second = |what, name| {
            let at_most = self.ratio((floor::NAME, TwoOnTwo), (floor::NAME, OneThread))? * 1.1;
            Some(Bound { what, ratio: self.ratio((name, TwoOnTwo), (name, OneThread))?, at_most })
        };
        let bounds = [
            to_floor("QPS + slow-call breaker, exact, to the floor", "qps+slow exact", 1.8),
            to_floor("QPS + slow-call breaker, strict, to the floor", "qps+slow strict", 1.8),
            to_floor("blocked, exact, to the floor", "blocked exact", 1.0),
            to_floor("blocked, strict, to the floor", "blocked strict", 1.0),
            to_floor("blocked by a breaker, to the floor", "blocked breaker", 1.0),
            second(
                "second thread on another resource, exact, to one thread (the floor's + 10 %)",
                "qps+slow exact",
            ),
            second(
                "second thread on another resource, strict, to one thread (the floor's + 10 %)",
                "qps+slow strict",
            ),
            same("100 buckets to 2", "buckets 100", "buckets 2"),
            same("1 000 buckets to 2", "buckets 1000", "buckets 2"),
            same("one of 1 000 resources to one of 2", "by name 1 of 1000", "by name"),
        ];
        bounds.into_iter().flatten().collect()
    }

    pub(crate) fn to_json(&self) -> String {
        let rows: Vec<Value> = self
            .timings
            .iter()
            .map(|timing| {
                json!({
                    "name": timing.row.name,
                    "threads": timing.setting.lanes().len(),
                    "resources": timing.setting.n_resources(),
                    "min_ns": timing.min(),
                    "median_ns": timing.median(),
                    "max_ns": timing.max(),
                    "floor_ratio": self.floor_ratio(timing),
                })
            })
            .collect();
        let allocations: Vec<Value> = self
            .allocations
            .iter()
            .map(|Allocations { name, n, at_most }| {
                json!({ "name": name, "calls": ALLOCATION_CALLS, "allocations": n, "at_most": at_most })
            })
            .collect();
        let memory: Vec<Value> = self
            .memory
            .iter()
            .map(|memory| json!({ "state": memory.state, "bytes": memory.bytes, "budget": memory.budget }))
            .collect();
        let report = json!({ "rows": rows, "allocations": allocations, "memory": memory });
        format!("{report:#}\n")
    }

    fn write_timings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { rounds, calls, .. } = self.plan;
        writeln!(f, "ns per call in {rounds} interleaved rounds of {calls} calls per thread")?;
        writeln!(f, "with two threads, of the rounds in which both ran at the same time")?;
        writeln!(
            f,
            "×floor: median to the floor's median with as many threads, each on counters of its own"
        )?;
        for setting in Setting::ALL {
            writeln!(f, "\n{:<28}{:>9}{:>9}{:>9}{:>9}", setting.title(), "min", "median", "max", "×floor")?;
            let mut is_of_rule = false;
            for timing in self.timings.iter().filter(|timing| timing.setting == setting) {
                if timing.row.is_of_rule && !is_of_rule {
                    is_of_rule = true;
                    writeln!(f, "  of each rule, through a call site")?;
                }
                write!(f, "  {:<26}", timing.row.name)?;
                write!(f, "{:>9.1}{:>9.1}{:>9.1}", timing.min(), timing.median(), timing.max())?;
                write!(f, "{:>9.2}", self.floor_ratio(timing).unwrap_or(f64::NAN))?;
                if setting == Setting::OneThread {
                    write!(f, "   {}", timing.row.note)?;
                }
                writeln!(f)?;
            }
        }
        for Timing { row, setting, odd, .. } in self.timings.iter().filter(|timing| timing.odd > 0) {
            let (name, setting) = (row.name, setting.title());
            writeln!(f, "\n`{name}`, {setting}: {odd} calls ended otherwise than they should")?;
        }
        Ok(())
    }

    fn write_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = self.bounds();
        if bounds.is_empty() {
            return Ok(());
        }
        let title = "budgets of time (medians; does not fail the program)";
        writeln!(f, "\n{title:<84}{:>7}{:>9}", "ratio", "at most")?;
        for Bound { what, ratio, at_most } in bounds {
            let verdict = if ratio <= at_most { "ok" } else { "over" };
            writeln!(f, "  {what:<82}{ratio:>7.2}{at_most:>9.2}   {verdict}")?;
        }
        Ok(())
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:<84}{:>7}{:>9}",
            "bytes of the heap, per resource unless it says otherwise", "bytes", "at most"
        )?;
        for memory in &self.memory {
            let Memory { state, bytes, budget } = memory;
            match budget {
                Some(budget) => {
                    let verdict = if memory.is_over() { "OVER" } else { "ok" };
                    writeln!(f, "  {state:<82}{bytes:>7}{budget:>9}   {verdict}")?;
                }
                None => writeln!(f, "  {state:<82}{bytes:>7}{:>9}", "-")?,
            }
        }
        Ok(())
    }

    fn write_allocations(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = format!("allocations in {ALLOCATION_CALLS} calls of each row");
        writeln!(f, "\n{title:<84}{:>7}{:>9}", "number", "at most")?;
        let (none, some): (Vec<_>, Vec<_>) =
            self.allocations.iter().partition(|row| row.at_most == 0 && !row.is_over());
        if !none.is_empty() {
            writeln!(f, "  {:<82}{:>7}{:>9}   ok", format!("{} rows", none.len()), 0, 0)?;
        }
        for row in some {
            let verdict = if row.is_over() { "OVER" } else { "ok" };
            writeln!(f, "  {:<82}{:>7}{:>9}   {verdict}", row.name, row.n, row.at_most)?;
        }
        Ok(())
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_timings(f)?;
        self.write_bounds(f)?;
        self.write_memory(f)?;
        self.write_allocations(f)
    }
}
