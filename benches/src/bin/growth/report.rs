//! The tables, as text, as JSON and as Markdown.

use std::fmt::{self, Write};

use leap_benches::flat::{self, Flat};
use leap_benches::memory::Memory;
use leap_benches::results::taken;
use serde_json::{Value, json};

use crate::contention::{Line, PATHS, Predicted, predict};
use crate::measure::{Measured, Timed};
use crate::series::THREADS;
use crate::start_up::{BUDGET_MS, FUNCTIONS, StartUp};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    /// Processes whose first calls are timed.
    pub(crate) children: usize,
    /// Calls of the part `flat`, and names.
    pub(crate) events: u64,
    pub(crate) names: u64,
}

impl Scale {
    pub(crate) const FULL: Self = Self { rounds: 21, children: 20, events: 10_000_000, names: 100_000 };
    pub(crate) const QUICK: Self = Self { rounds: 3, children: 5, events: 400_000, names: 60_000 };
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) scale: Scale,
    /// By which it can be measured again.
    command: String,
    pub(crate) measured: Vec<Measured>,
    /// Of a cache line, from one core to the other.
    pub(crate) transfer_ns: Option<f64>,
    pub(crate) bytes: Vec<Memory>,
    pub(crate) start_up: Option<StartUp>,
    pub(crate) flat: Vec<Flat>,
}

/// The model's rows.
const MODEL_THREADS: [u32; 3] = [2, 8, 64];
const MODEL_TRANSFERS: [f64; 2] = [50.0, 100.0];

/// What the model says of one series, and what was measured.
struct Contended<'a> {
    path: &'a str,
    lines: &'static [Line],
    alone_ns: f64,
    /// Of something that is not built there is no measurement.
    two: &'a Timed,
    /// By the transfer measured here.
    two_predicted: Predicted,
    /// For each transfer of the model, for each number of threads.
    predicted: Vec<(f64, u32, Predicted)>,
}

impl Report {
    pub(crate) fn of(scale: Scale, command: String) -> Self {
        Self {
            scale,
            command,
            measured: vec![],
            transfer_ns: None,
            bytes: vec![],
            start_up: None,
            flat: vec![],
        }
    }

    /// Whether memory is flat and within its budgets. Calls that ended otherwise than they should are only told: a thread
    /// that is stopped between its clock reading and its question finds the window of an exact rule full.
    pub(crate) fn is_right(&self) -> bool {
        self.flat.iter().all(Flat::is_flat) && !self.bytes.iter().any(Memory::is_over)
    }

    fn points(&self) -> impl Iterator<Item = (&Measured, &Timed)> {
        self.measured.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)))
    }

    fn contended(&self) -> Vec<Contended<'_>> {
        let Some(transfer_ns) = self.transfer_ns else { return vec![] };
        let of = |(name, lines): (&'static str, &'static [Line])| {
            let series = self.measured.iter().find(|series| series.name == name)?;
            let [alone, two] = &series.points[..] else { return None };
            let alone_ns = alone.median();
            let predicted = MODEL_TRANSFERS.into_iter().flat_map(|transfer| {
                let of = move |threads| (transfer, threads, predict(alone_ns, lines, threads, transfer));
                MODEL_THREADS.into_iter().map(of)
            });
            Some(Contended {
                path: name.split_once(": ").map_or(name, |(_, path)| path),
                lines,
                alone_ns,
                two,
                two_predicted: predict(alone_ns, lines, 2, transfer_ns),
                predicted: predicted.collect(),
            })
        };
        THREADS.into_iter().zip(PATHS).filter_map(of).collect()
    }

    pub(crate) fn to_json(&self) -> String {
        let series: Vec<Value> = self
            .points()
            .map(|(series, point)| {
                json!({
                    "series": series.name,
                    "point": point.label,
                    "threads": point.threads,
                    "min_ns": point.min(),
                    "median_ns": point.median(),
                    "median_ratio": series.ratio(point),
                    "min_ratio": series.least_ratio(point),
                    "allocations": point.allocations,
                    "odd": point.odd,
                })
            })
            .collect();
        let contention: Vec<Value> = self
            .contended()
            .iter()
            .flat_map(|contended| {
                contended.predicted.iter().map(|(transfer, threads, predicted)| {
                    json!({
                        "path": contended.path,
                        "transfer_ns": transfer,
                        "threads": threads,
                        "modelled_ns": predicted.ns,
                        "bottleneck": predicted.bottleneck,
                    })
                })
            })
            .collect();
        let bytes: Vec<Value> = self
            .bytes
            .iter()
            .map(|memory| json!({ "state": memory.state, "bytes": memory.bytes, "budget": memory.budget }))
            .collect();
        let flat: Vec<Value> = self
            .flat
            .iter()
            .map(|flat| {
                json!({
                    "what": flat.what,
                    "calls": flat.calls,
                    "bytes_after_half": flat.early,
                    "bytes": flat.late,
                    "blocks": flat.told.blocks,
                    "transitions": flat.told.transitions,
                    "overflows": flat.told.overflows,
                })
            })
            .collect();
        let start_up = self.start_up.as_ref().map(|StartUp { first, further }| {
            json!({ "first_call_ms": first, "further_first_calls_ms": further, "further": FUNCTIONS })
        });
        let report = json!({
            "series": series,
            "transfer_ns": self.transfer_ns,
            "contention_modelled": contention,
            "bytes": bytes,
            "start_up": start_up,
            "flat": flat,
        });
        format!("{report:#}\n")
    }

    pub(crate) fn to_markdown(&self) -> String {
        let mut page = String::new();
        self.write_markdown(&mut page).expect("a string takes all");
        page
    }

    fn write_markdown(&self, page: &mut impl Write) -> fmt::Result {
        let taken = taken(&self.command);
        writeln!(page, "## Cost as work grows\n\n{taken}\n")?;
        let rounds = self.scale.rounds;
        writeln!(
            page,
            "Nanoseconds per call: median (least) of {rounds} interleaved rounds, and the ratios of both to those of the \
             first point. Where other load is about, the least are nearer to the truth; at the end the load average was \
             {}.\n",
            load_average()
        )?;
        for series in self.measured.iter().filter(|series| !series.name.starts_with("threads")) {
            let Measured { name, note, points } = series;
            writeln!(page, "**{name}**: {note}.\n")?;
            let row = |page: &mut _, title: &str, of: &dyn Fn(&Timed) -> String| {
                let cells: Vec<String> = points.iter().map(of).collect();
                writeln!(page as &mut dyn Write, "| {title} | {} |", cells.join(" | "))
            };
            row(page, "", &|point| point.label.clone())?;
            row(page, "---", &|_| "---:".to_owned())?;
            row(page, "ns", &|point| format!("{:.0} ({:.0})", point.median(), point.min()))?;
            row(page, "ratio", &|point| {
                format!("{:.2} ({:.2})", series.ratio(point), series.least_ratio(point))
            })?;
            if points.iter().any(|point| point.allocations >= 0.01) {
                row(page, "allocations", &|point| format!("{:.2}", point.allocations))?;
            }
            writeln!(page)?;
        }
        self.write_contention(page)?;
        self.write_bytes(page)?;
        if let Some(StartUp { first, further }) = &self.start_up {
            let [first, further] = [first, further].map(|ms| least_median_most(ms));
            writeln!(page, "### Start-up\n")?;
            writeln!(
                page,
                "Of {} processes, in ms, least / median / most: the first guarded call, with the registry made and its \
                 clock started, {first} (at most {BUDGET_MS:.0}); the first calls of {FUNCTIONS} further functions \
                 together, {further}.\n",
                self.scale.children
            )?;
        }
        if !self.flat.is_empty() {
            writeln!(page, "### Memory that stays flat\n")?;
            writeln!(page, "| | calls | blocks | transitions | live bytes after half | after all |")?;
            writeln!(page, "| --- | ---: | ---: | ---: | ---: | ---: |")?;
            for Flat { what, calls, early, late, told } in &self.flat {
                let (blocks, transitions) = (told.blocks, told.transitions);
                writeln!(page, "| {what} | {calls} | {blocks} | {transitions} | {early} | {late} |")?;
            }
            writeln!(page, "\nAt most {} bytes more after all than after half.", flat::SLACK)?;
        }
        Ok(())
    }

    fn write_contention(&self, page: &mut impl Write) -> fmt::Result {
        let contended = self.contended();
        let Some(transfer_ns) = self.transfer_ns.filter(|_| !contended.is_empty()) else { return Ok(()) };
        writeln!(page, "### Threads on one resource\n")?;
        writeln!(
            page,
            "Measured with one thread and two, in ns per call of a thread. **All else here is a model, not a \
             measurement**: what the cache lines that calls write would cost if 2, 8 or 64 cores did nothing but call one \
             resource, for 50 and 100 ns to hand a line over. It is a lower bound by queueing theory, see \
             `benches/src/bin/growth/contention.rs`. Handing a line over took {transfer_ns:.0} ns here.\n"
        )?;
        write!(page, "| | 1 thread | 2 threads | ratio | 2, modelled |")?;
        for transfer in MODEL_TRANSFERS {
            for threads in MODEL_THREADS {
                write!(page, " {threads} at {transfer:.0} ns |")?;
            }
        }
        writeln!(page, " all wait for |")?;
        writeln!(page, "| --- |{} --- |", " ---: |".repeat(4 + MODEL_TRANSFERS.len() * MODEL_THREADS.len()))?;
        for Contended { path, alone_ns, two, two_predicted, predicted, .. } in &contended {
            let (median, min) = (two.median(), two.min());
            write!(page, "| {path} | {alone_ns:.0} | {median:.0} ({min:.0}) | {:.2} |", median / alone_ns)?;
            write!(page, " {:.0} |", two_predicted.ns)?;
            for (.., predicted) in predicted {
                write!(page, " {:.0} |", predicted.ns)?;
            }
            let last = predicted.last().and_then(|(.., predicted)| predicted.bottleneck);
            writeln!(page, " {} |", last.unwrap_or("-"))?;
        }
        writeln!(page, "\nThe lines of each call; *stripes* are lines that threads are spread over:\n")?;
        for Contended { path, lines, .. } in &contended {
            let lines = lines.iter().map(|line| match line.stripes {
                1.0 => format!("{} ({} fetches)", line.what, line.fetches),
                stripes => format!("{} ({} fetches, {stripes} stripes)", line.what, line.fetches),
            });
            writeln!(page, "- {path}: {}", lines.collect::<Vec<_>>().join("; "))?;
        }
        writeln!(page)
    }

    fn write_bytes(&self, page: &mut impl Write) -> fmt::Result {
        if self.bytes.is_empty() {
            return Ok(());
        }
        writeln!(page, "### Bytes of the heap\n\nPer resource unless it says otherwise.\n")?;
        writeln!(page, "| | bytes | at most |\n| --- | ---: | ---: |")?;
        for Memory { state, bytes, budget } in &self.bytes {
            let budget = budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string());
            writeln!(page, "| {state} | {bytes} | {budget} |")?;
        }
        writeln!(page)
    }
}

/// Of the last minute: how many threads wanted a core.
fn load_average() -> String {
    let said = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    said.split_whitespace().next().map_or_else(|| "not to be had".to_owned(), str::to_owned)
}

fn least_median_most(ms: &[f64]) -> String {
    format!("{:.2} / {:.2} / {:.2}", ms[0], ms[ms.len() / 2], ms[ms.len() - 1])
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for series in &self.measured {
            writeln!(f, "\n{}", series.name)?;
            if !series.note.is_empty() {
                writeln!(f, "  {}", series.note)?;
            }
            writeln!(
                f,
                "  {:>10}{:>10}{:>8}{:>10}{:>8}{:>8}",
                "", "min ns", "ratio", "median", "ratio", "allocs"
            )?;
            for point in &series.points {
                let Timed { label, allocations, .. } = point;
                write!(f, "  {label:>10}{:>10.1}{:>8.2}", point.min(), series.least_ratio(point))?;
                writeln!(f, "{:>10.1}{:>8.2}{allocations:>8.2}", point.median(), series.ratio(point))?;
                if point.odd > 0 {
                    writeln!(f, "  {} calls ended otherwise than they should", point.odd)?;
                }
            }
        }
        let contended = self.contended();
        if let Some(transfer_ns) = self.transfer_ns.filter(|_| !contended.is_empty()) {
            writeln!(
                f,
                "\nthreads on one resource, ns per call of a thread: measured of 1 and of 2; all else is a MODEL of the \
                 cache lines that calls write, not a measurement"
            )?;
            writeln!(f, "  handing a line over took {transfer_ns:.0} ns here")?;
            for Contended { path, alone_ns, two, two_predicted, predicted, .. } in &contended {
                write!(f, "  {path}: 1 takes {alone_ns:.0}, 2 take {:.0}", two.median())?;
                write!(f, ", 2 modelled {:.0}", two_predicted.ns)?;
                for (transfer, threads, predicted) in predicted {
                    write!(f, "; {threads} at {transfer:.0} ns: {:.0}", predicted.ns)?;
                }
                let last = predicted.last();
                if let Some((_, threads, predicted)) = last {
                    write!(f, " ({:.1} calls per µs in all", predicted.calls_per_us(*threads))?;
                    let bottleneck = predicted.bottleneck.unwrap_or("nothing in particular");
                    write!(f, ", waiting for {bottleneck})")?;
                }
                writeln!(f)?;
            }
        }
        if !self.bytes.is_empty() {
            writeln!(f, "\nbytes of the heap, per resource unless it says otherwise")?;
        }
        for memory in &self.bytes {
            let Memory { state, bytes, budget } = memory;
            write!(f, "  {state:<70}{bytes:>8}")?;
            match budget {
                Some(budget) => writeln!(f, "{budget:>8}  {}", if memory.is_over() { "OVER" } else { "ok" })?,
                None => writeln!(f)?,
            }
        }
        if let Some(StartUp { first, further }) = &self.start_up {
            writeln!(f, "\nstart-up of {} processes, ms: least / median / most", first.len())?;
            writeln!(f, "  the first guarded call (budget {BUDGET_MS:.0}): {}", least_median_most(first))?;
            writeln!(f, "  {FUNCTIONS} further first calls: {}", least_median_most(further))?;
        }
        for flat in &self.flat {
            let Flat { what, calls, early, late, told } = flat;
            let verdict = if flat.is_flat() { "flat" } else { "GROWS" };
            writeln!(f, "\n{what}: {calls} calls, {early} bytes after half, {late} after all: {verdict}")?;
            writeln!(f, "  {told:?}")?;
        }
        Ok(())
    }
}
