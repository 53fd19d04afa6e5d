//! The report as a section of the page of results.

use std::fmt::Write as _;

use leap_benches::measure::Setting;
use leap_benches::results;

use crate::report::{Phase, Report, Timing};
use crate::row::Part;
use crate::versions;

/// The section; `command` is what was called.
pub(crate) fn section(report: &Report<'_>, command: &str) -> String {
    let (rounds, calls) = (report.by_its_clock.n_rounds(), report.plan.calls);
    let mut text = format!(
        "## Cost of a call beside peers\n\n{}.\n\nPeers: {}.\n\nEach row guards the same small function, in nanoseconds \
        per call of {rounds} interleaved rounds of {} calls per thread (fewer where they take long, a batch of \
        half a millisecond): medians, with the least and the most. *2 on one* and *2 on two* are two threads on one resource and \
        on two. *× leap* is the median to that of leap's guarded call (QPS rule, slow-call breaker, exact) \
        with as many threads; of what says no, to leap's blocked call. *× floor* is the median to the floor's: the \
        function with two raw clock reads and six uncontended `fetch_add` around it. *Allocations* are those of one \
        call on one thread. Two threads are timed only while both run (a dash: the machine never ran them at once).\n\n",
        results::taken(command),
        versions::all().join(", "),
        in_thousands(&calls.to_string()),
    );
    write_figures(&mut text, report, &report.by_its_clock);
    let rounds = report.by_ticker.n_rounds();
    let _ = write!(
        text,
        "\nThe same while sentinel-core reads the time that its ticker writes down each millisecond, in {rounds} rounds \
        of their own, since a ticker cannot be stopped:\n\n",
    );
    write_figures(&mut text, report, &report.by_ticker);
    write_checks(&mut text, report);
    write_lacks(&mut text, &report.by_its_clock);
    text.push_str(NOTES);
    text
}

/// A table of all settings.
fn write_figures(text: &mut String, report: &Report<'_>, phase: &Phase<'_>) {
    text.push_str("| | a call | × leap | × floor | 1 thread | 2 on one | × leap | 2 on two | ");
    text.push_str("× leap | allocations |\n");
    text.push_str("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for part in Part::ALL {
        let mut is_first = true;
        for timing in phase.of(Setting::OneThread).filter(|timing| timing.row.part == part) {
            if std::mem::take(&mut is_first) {
                let _ = writeln!(text, "| **{}** | | | | | | | | | |", part.title());
            }
            write_row(text, report, phase, timing);
        }
    }
    if phase.odd().next().is_some() {
        text.push_str("\nOdd, that is calls that ended otherwise than they should:\n\n");
    }
    for timing in phase.odd() {
        let _ = writeln!(text, "- `{}`, {}: {}", timing.row.name, timing.setting.title(), timing.odd);
    }
}

fn write_row(text: &mut String, report: &Report<'_>, phase: &Phase<'_>, one: &Timing<'_>) {
    let (name, does) = (one.row.name, one.row.does);
    let figure = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), round);
    let _ =
        write!(text, "| {name} | {does} | {} | {} ", figure(phase.to_leap(one)), figure(phase.to_floor(one)));
    let _ = write!(text, "| {} ", spread(one));
    for setting in [Setting::TwoOnOne, Setting::TwoOnTwo] {
        let timing = phase.timing(name, setting).filter(|timing| !timing.apart);
        let _ = write!(text, "| {} ", timing.map_or_else(|| "-".to_owned(), spread));
        let _ = write!(text, "| {} ", figure(timing.and_then(|timing| phase.to_leap(timing))));
    }
    let _ = writeln!(text, "| {} |", figure(report.allocations(name)));
}

fn spread(timing: &Timing<'_>) -> String {
    format!("{} ({} to {})", round(timing.median()), round(timing.min()), round(timing.max()))
}

/// With as many places as a reader looks at.
fn round(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        f if f < 1.0 => format!("{f:.2}"),
        f if f < 10.0 => format!("{f:.1}"),
        f => in_thousands(&format!("{f:.0}")),
    }
}

/// With a gap before every three digits.
fn in_thousands(digits: &str) -> String {
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b' ')).into_owned()
}

fn write_checks(text: &mut String, report: &Report<'_>) {
    text.push_str("\nWhat is promised of this, by the medians of one thread:\n\n");
    text.push_str("| | ratio | at least | |\n| --- | ---: | ---: | --- |\n");
    for check in report.checks() {
        let (what, ratio, verdict) = (check.what, round(check.ratio), check.verdict());
        let _ = writeln!(text, "| {what} | {ratio} | {:.0} | {verdict} |", check.at_least);
    }
}

/// Rows that leave out the same stand in one line.
fn write_lacks(text: &mut String, phase: &Phase<'_>) {
    text.push_str("\nWhat rows leave out of that which leap's guarded call does:\n\n");
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in phase.of(Setting::OneThread).map(|timing| timing.row).filter(|row| !row.lacks.is_empty()) {
        match lines.iter_mut().find(|(lacks, _)| *lacks == row.lacks) {
            Some((_, names)) => names.push(row.name),
            None => lines.push((row.lacks, vec![row.name])),
        }
    }
    for (lacks, names) in lines {
        let _ = writeln!(text, "- `{}`: {lacks}", names.join("`, `"));
    }
}

const NOTES: &str = "
What it does not say: a bare limiter or breaker is cheaper because it does less, so where all you want is a limit, take \
one. Peers are handed to their function by reference, whereas a guarded function finds its resource by its call site. \
Async rows run in a current-thread runtime of tokio's for each thread, as one task per batch. sentinel-core is measured \
by calls that go out, which spares it the numbers of the whole system, without `init_default`, whose threads read the \
machine's load, and without backtraces (`RUST_BACKTRACE=0`), which its blocks would take. Labels of metrics are \
literals, which cost least; its recorder is that of metrics-exporter-prometheus without its listener, and what its \
histograms pile up is drained between batches and not timed. tower-resilience's breaker awaits a lock: with two threads, \
they wake one another. What two threads on one resource take depends on the cores on which a virtual machine's \
processors happen to run: the same guarded call has been seen at 150, 260 and 650 ns, so compare rows, not runs.

An odd call of an exact rule was refused. When the machine takes a thread away amid a call, that call counts as passing \
just now until its time is known; these rules are of 1 024 per 10 µs, so as to be asked in full and never to refuse, and \
one such call is in the way of the others for 10 µs.

For orientation only, Java, measured elsewhere and not in this run, where the floor took 20 to 33 ns: Sentinel 518 ns \
with a flow rule (16 to 26 × floor) and 1 596 ns blocked (48 to 80 ×); resilience4j 130 ns with a breaker and a limiter \
(3.9 to 6.5 ×).
";

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn figures_have_as_many_places_as_a_reader_looks_at() {
        assert_eq!(
            [0.0, 0.256, 2.31, 69.4, 1_234.5, 76_000.0].map(round),
            ["0", "0.26", "2.3", "69", "1 234", "76 000"]
        );
    }
}
