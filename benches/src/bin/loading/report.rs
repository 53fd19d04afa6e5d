//! The tables, and the same as JSON.

use std::fmt;
use std::thread;

use serde_json::{Value, json};

use crate::calls::{self, Beside, CALLERS, Quantiles, Row, Way};
use crate::loads::Taken;
use crate::memory::{self, Memory};

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) calls: calls::Plan,
    pub(crate) rows: Vec<Row>,
    pub(crate) loads: Vec<Taken>,
    pub(crate) of_memory: memory::Plan,
    pub(crate) memory: Vec<Memory>,
}

/// The figures of a row: medians of its rounds.
struct Figures {
    ns: Quantiles,
    /// To those of the quiet row of the same round.
    ratios: Quantiles,
}

impl Report {
    /// Whether memory is flat, and no call was blocked.
    pub(crate) fn is_right(&self) -> bool {
        self.memory.iter().all(Memory::is_flat) && self.rows.iter().all(|row| row.odd == 0)
    }

    fn rows_of(&self, callers: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.callers == callers)
    }

    fn figures(&self, row: &Row, way: Way) -> Option<Figures> {
        let quiet = self.rows_of(row.callers).find(|row| row.beside == Beside::Nothing)?;
        let of_row = || row.rounds.iter().map(|round| &round[way as usize]);
        let of_quiet = || quiet.rounds.iter().map(|round| &round[way as usize]);
        let ns = |field: fn(&Quantiles) -> f64| median(of_row().map(field));
        let ratio = |field: fn(&Quantiles) -> f64| {
            median(of_row().zip(of_quiet()).map(|(one, other)| field(one) / field(other)))
        };
        let max = of_row().map(|round| round.max).fold(0.0, f64::max);
        Some(Figures {
            ns: Quantiles { median: ns(|of| of.median), p99: ns(|of| of.p99), p999: ns(|of| of.p999), max },
            ratios: Quantiles {
                median: ratio(|of| of.median),
                p99: ratio(|of| of.p99),
                p999: ratio(|of| of.p999),
                max: ratio(|of| of.max),
            },
        })
    }

    pub(crate) fn to_json(&self) -> String {
        let calls: Vec<Value> = self
            .rows
            .iter()
            .flat_map(|row| Way::ALL.map(|way| (row, way)))
            .filter_map(|(row, way)| Some((row, way, self.figures(row, way)?)))
            .map(|(row, way, Figures { ns, ratios })| {
                json!({
                    "callers": row.callers,
                    "beside": row.beside.title(),
                    "way": way.title(),
                    "median_ns": ns.median,
                    "p99_ns": ns.p99,
                    "p999_ns": ns.p999,
                    "max_ns": ns.max,
                    "median_to_quiet": ratios.median,
                    "p99_to_quiet": ratios.p99,
                    "p999_to_quiet": ratios.p999,
                    "blocked": row.odd,
                    "loads": row.loads.len(),
                    "load_median_ms": (!row.loads.is_empty()).then(|| median(row.loads.iter().copied())),
                    "load_max_ms": row.loads.last(),
                })
            })
            .collect();
        let loads: Vec<Value> = self
            .loads
            .iter()
            .map(|load| json!({ "name": load.name, "median_ms": load.median(), "max_ms": load.max() }))
            .collect();
        let memory: Vec<Value> = self
            .memory
            .iter()
            .map(|memory| {
                json!({
                    "what": memory.what,
                    "after": self.of_memory.after,
                    "bytes": memory.bytes,
                    "is_flat": memory.is_flat(),
                })
            })
            .collect();
        let report = json!({ "calls": calls, "loads": loads, "memory": memory });
        format!("{report:#}\n")
    }

    fn write_calls(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls::Plan { rounds, slice } = self.calls;
        let cores = thread::available_parallelism().map_or(0, usize::from);
        writeln!(f, "ns of a call, enter and exit and the reading of two clocks included,")?;
        writeln!(f, "in {rounds} interleaved rounds of {slice:?} for each row, on {cores} cores")?;
        writeln!(f, "median, p99 and p99.9: the median of the rounds'; max: of all")?;
        writeln!(f, "×quiet: the median of the ratios to the quiet row of the same round")?;
        writeln!(
            f,
            "beside the callers one more thread waits (quiet), computes (busy), builds and loads sets of 10 000 rules\n\
             (loads), or patches one rule of 10 000 (patches)"
        )?;
        for callers in CALLERS {
            write!(f, "\n{callers} calling + 1")?;
            // The scheduler is in the figures where threads have to share a core.
            f.write_str(if callers + 1 > cores { ", more threads than cores: " } else { ": " })?;
            writeln!(f, "{}", if callers + 1 > cores { "compare with busy" } else { "compare with quiet" })?;
            writeln!(
                f,
                "  {:<20}{:>8}{:>9}{:>8}{:>9}{:>9}{:>9}{:>10}{:>7}{:>9}{:>9}",
                "", "median", "×quiet", "p99", "×quiet", "p99.9", "×quiet", "max", "loads", "ms", "max ms"
            )?;
            for (row, way) in
                Way::ALL.iter().flat_map(|way| self.rows_of(callers).map(move |row| (row, *way)))
            {
                let Some(Figures { ns, ratios }) = self.figures(row, way) else { continue };
                write!(f, "  {:<20}", format!("{}, {}", way.title(), row.beside.title()))?;
                write!(f, "{:>8.0}{:>9.2}{:>8.0}{:>9.2}", ns.median, ratios.median, ns.p99, ratios.p99)?;
                write!(f, "{:>9.0}{:>9.2}{:>10.0}", ns.p999, ratios.p999, ns.max)?;
                if let Some(max) = row.loads.last() {
                    let median = median(row.loads.iter().copied());
                    write!(f, "{:>7}{median:>9.2}{max:>9.2}", row.loads.len())?;
                }
                writeln!(f)?;
            }
        }
        let (n, odd) = self.rows.iter().fold((0, 0), |(n, odd), row| (n + row.calls, odd + row.odd));
        writeln!(f, "\n{n} calls were timed; {odd} were blocked, and none should be")
    }

    fn write_loads(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<44}{:>9}{:>9}", "ms of a load while nobody calls", "median", "max")?;
        for load in &self.loads {
            writeln!(f, "  {:<42}{:>9.2}{:>9.2}", load.name, load.median(), load.max())?;
        }
        Ok(())
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory::Plan { n_rules, after } = self.of_memory;
        let title = format!("KiB live with {n_rules} rules, after so many");
        writeln!(f, "\n{title:<60}{:>9}{:>9}{:>9}", after[0], after[1], after[2])?;
        for memory in &self.memory {
            write!(f, "  {:<58}", memory.what)?;
            for bytes in memory.bytes {
                write!(f, "{:>9}", bytes / 1024)?;
            }
            writeln!(f, "   {}", if memory.is_flat() { "flat" } else { "GROWS" })?;
        }
        Ok(())
    }
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_calls(f)?;
        self.write_loads(f)?;
        self.write_memory(f)
    }
}
