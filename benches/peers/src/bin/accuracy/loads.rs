//! Each load, given to each limiter.

use std::time::Duration;

use leap_runtime::{Precision, SystemClock};

use crate::bursts::Load;
use crate::calls::Call;
use crate::counts::Counts;
use crate::hammer::{Hammered, hammer};
use crate::limiters::{self, Kind, Promise, leap_at};
use crate::options::Plan;
use crate::promise::{Refusals, at_their_readings, refusals, unlike_the_log};
use crate::report::{Checked, Report, Table};

/// Of those that are hammered.
const LIMIT: u32 = 1_000;
/// Of the others.
const SMALL: u32 = 100;
/// Of bursts that come each second.
const SECONDS: u64 = 300;
/// Of the log's admissions, under a load without gaps: a window of 100 buckets is 1.01 s long.
const STRICT_SHARE: f64 = 0.99;

pub(crate) fn all(plan: Plan) -> Report {
    let mut report = Report::default();
    let idle = |times| Load::after_idle(SMALL, times);
    let idle_about = format!(
        "{SMALL} per second. After 3 s of rest {} calls at once, then {} each 10 ms for not quite a second; \
         {} times.",
        2 * SMALL,
        SMALL / 10,
        plan.idle_times
    );
    bursts(&mut report, "Bursts after rest", idle_about, &idle(plan.idle_times), &idle(plan.real_idle_times));
    let boundaries = |times| Load::straddling(SMALL, times);
    let boundaries_about = format!(
        "{SMALL} per second. {SMALL} calls 5 ms before the end of each second, and again 5 ms after it."
    );
    let [set, real] = [plan.boundaries, plan.real_boundaries].map(boundaries);
    bursts(&mut report, "Bursts around each full second", boundaries_about, &set, &real);
    each_second(&mut report);
    saturated(&mut report, plan);
    for period_ms in [200, 199] {
        sentinel(&mut report, period_ms);
    }
    for n_threads in [2, 8] {
        hammered(&mut report, plan, n_threads);
    }
    report
}

fn hammered(report: &mut Report, plan: Plan, n_threads: usize) {
    let title = format!("{n_threads} threads that ask without a pause");
    let about =
        format!("{LIMIT} per second, for {:?}, begun 0.45 s into a second. Real time.", plan.hammered);
    let few = [limiters::EXACT, limiters::STRICT, limiters::GOVERNOR];
    let kinds: &[Kind] = if plan.all { &limiters::ALL } else { &few[..if n_threads == 2 { 3 } else { 2 }] };
    let mut rows = Vec::new();
    for kind in kinds {
        eprintln!("{title}: {}", kind.name);
        let Hammered { mut calls, span } = hammer(kind, LIMIT, n_threads, plan.hammered);
        let refused = (kind.promise == Promise::Exact).then(|| refusals(&calls, LIMIT as usize, n_threads));
        if refused.is_some() {
            calls = at_their_readings(&calls);
        }
        let counts = Counts::of(&calls, LIMIT as usize, span);
        if kind.promise != Promise::None {
            report.promises.push(never_over(kind, &title, LIMIT, &counts));
        }
        if let Some(refused) = refused {
            report.promises.push(none_refused_with_room(kind, &title, refused, counts.asked));
        }
        if kind.promise == Promise::Strict {
            report.promises.push(near_the_log(kind, &title, &counts));
        }
        rows.push((kind.name.to_owned(), counts));
    }
    report.tables.push(Table { title, about, limit: LIMIT, rows });
}

/// On clocks that are set where there are such, and else a shorter load in real time.
fn bursts(report: &mut Report, title: &str, about: String, set: &Load, real: &Load) {
    let mut rows = Vec::new();
    for kind in &limiters::ALL {
        if let Some(settable) = kind.settable {
            let calls = set.on_a_set_clock(settable(SMALL));
            rows.push((kind.name.to_owned(), judged(report, kind, title, set, &calls)));
        } else if !real.is_empty() {
            eprintln!("{title}: {}", kind.name);
            let calls = real.in_real_time(&(kind.real)(SMALL, &SystemClock::new()));
            rows.push((format!("{}, real time", kind.name), judged(report, kind, title, real, &calls)));
        }
    }
    report.tables.push(Table { title: title.to_owned(), about, limit: SMALL, rows });
}

fn judged(report: &mut Report, kind: &Kind, title: &str, load: &Load, calls: &[Call]) -> Counts {
    let counts = Counts::of(calls, SMALL as usize, load.span());
    match kind.promise {
        Promise::Exact => {
            let unlike = unlike_the_log(calls, SMALL as usize);
            let what = format!(
                "{title}: {} answered {unlike} of {} calls otherwise than the log",
                kind.name, counts.asked
            );
            report.promises.push(Checked { what, held: unlike == 0 });
        }
        Promise::Strict => report.promises.push(never_over(kind, title, SMALL, &counts)),
        Promise::None => {}
    }
    counts
}

fn saturated(report: &mut Report, plan: Plan) {
    let title = "Saturated";
    let load = Load::saturating(plan.saturated);
    let about = format!("{SMALL} per second. A call each 200 µs, for {:?}.", plan.saturated);
    let mut rows = Vec::new();
    for kind in &limiters::ALL {
        let Some(settable) = kind.settable else { continue };
        let counts = judged(report, kind, title, &load, &load.on_a_set_clock(settable(SMALL)));
        if kind.promise == Promise::Strict {
            report.promises.push(near_the_log(kind, title, &counts));
        }
        rows.push((kind.name.to_owned(), counts));
    }
    report.tables.push(Table { title: title.to_owned(), about, limit: SMALL, rows });
}

/// Where a window of buckets is furthest from the log: the last burst is in its oldest bucket still. That is shown; what is
/// checked of strict is that it is never over.
fn each_second(report: &mut Report) {
    let title = "The limit at once, each 1.000 s";
    let load = Load::each_second(SMALL, SECONDS);
    let about =
        format!("{SMALL} per second. {SMALL} calls at each full second, and nothing else, {SECONDS} times.");
    let with_clocks = limiters::ALL.iter().filter_map(|kind| Some((kind, kind.settable?)));
    let rows = with_clocks.map(|(kind, settable)| {
        let calls = load.on_a_set_clock(settable(SMALL));
        (kind.name.to_owned(), judged(report, kind, title, &load, &calls))
    });
    let rows = rows.collect();
    report.tables.push(Table { title: title.to_owned(), about, limit: SMALL, rows });
}

/// Sentinel's way to count, in more and fewer buckets.
fn sentinel(report: &mut Report, period_ms: u64) {
    let load = Load::each(period_ms, SMALL.into(), Duration::from_secs(60));
    let about = format!(
        "{SMALL} per second. {SMALL} calls each {period_ms} ms for 60 s, the first 0.45 s into a second. (60 buckets, as in \
         Sentinel's minute, do not divide a second; 50 stand for them.)"
    );
    let ways = [
        ("leap exact", Precision::Exact, 100),
        ("leap strict, 100 buckets", Precision::Strict, 100),
        ("leap sentinel, 2 buckets", Precision::Sentinel, 2),
        ("leap sentinel, 10 buckets", Precision::Sentinel, 10),
        ("leap sentinel, 50 buckets", Precision::Sentinel, 50),
    ];
    let rows = ways.map(|(name, precision, n_buckets)| {
        let calls = load.on_a_set_clock(leap_at(SMALL, precision, n_buckets));
        (name.to_owned(), Counts::of(&calls, SMALL as usize, load.span()))
    });
    let title = format!("Sentinel's buckets, bursts each {period_ms} ms");
    report.tables.push(Table { title, about, limit: SMALL, rows: rows.into() });
}

fn never_over(kind: &Kind, title: &str, limit: u32, counts: &Counts) -> Checked {
    let most = counts.sliding.certain;
    let what = format!("{title}: {} let {most} of {limit} pass in its fullest second", kind.name);
    Checked { what, held: most <= limit.into() }
}

fn none_refused_with_room(kind: &Kind, title: &str, refused: Refusals, asked: u64) -> Checked {
    let Refusals { with_room, while_others_passed } = refused;
    let what = format!(
        "{title}: {} refused {with_room} of {asked} calls though there was room, and {while_others_passed} that would \
         have had room had no other call been on its way",
        kind.name
    );
    Checked { what, held: with_room == 0 }
}

fn near_the_log(kind: &Kind, title: &str, counts: &Counts) -> Checked {
    let share = counts.share();
    let what = format!(
        "{title}: {} let {:.2} % of what the log does pass, of at least 99 %",
        kind.name,
        100.0 * share
    );
    Checked { what, held: share >= STRICT_SHARE }
}
