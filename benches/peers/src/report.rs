//! What was measured, and what follows from it.

use leap_benches::measure::{ALLOCATION_CALLS, Plan, Setting};
use serde_json::{Value, json};

use crate::peers::{glue, leap, sentinel};
use crate::row::{Part, Row};
use crate::versions;

pub(crate) type Timing<'a> = leap_benches::measure::Timing<'a, Row>;

/// All of it.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) plan: Plan,
    pub(crate) allocations: Vec<(&'static str, u64)>,
    pub(crate) by_its_clock: Phase<'a>,
    /// Once sentinel-core's ticker ran, with a floor of its own.
    pub(crate) by_ticker: Phase<'a>,
}

/// Rows that were measured in the same rounds.
#[derive(Debug)]
pub(crate) struct Phase<'a>(pub(crate) Vec<Timing<'a>>);

impl<'a> Phase<'a> {
    pub(crate) fn of(&self, setting: Setting) -> impl Iterator<Item = &Timing<'a>> {
        self.0.iter().filter(move |timing| timing.setting == setting)
    }

    pub(crate) fn timing(&self, name: &str, setting: Setting) -> Option<&Timing<'a>> {
        self.of(setting).find(|timing| timing.row.name == name)
    }

    pub(crate) fn to_floor(&self, timing: &Timing<'_>) -> Option<f64> {
        self.ratio(timing, leap::FLOOR)
    }

    /// To leap's guarded call, and to its blocked one if the row is of blocked calls.
    pub(crate) fn to_leap(&self, timing: &Timing<'_>) -> Option<f64> {
        let name = if timing.row.part == Part::Blocked { leap::BLOCKED } else { leap::GUARDED };
        self.ratio(timing, name)
    }

    /// None if the threads of either never ran at once.
    fn ratio(&self, timing: &Timing<'_>, to: &str) -> Option<f64> {
        let to = self.timing(to, timing.setting)?;
        (!timing.apart && !to.apart).then(|| timing.median() / to.median())
    }

    /// How many rounds there were: the plan's, or as many as there was time for.
    pub(crate) fn n_rounds(&self) -> usize {
        self.timing(leap::FLOOR, Setting::OneThread).map_or(0, Timing::n_rounds)
    }

    /// On one thread.
    fn ratio_of(&self, name: &str, to: &str) -> Option<f64> {
        self.ratio(self.timing(name, Setting::OneThread)?, to)
    }

    pub(crate) fn odd(&self) -> impl Iterator<Item = &Timing<'a>> {
        self.0.iter().filter(|timing| timing.odd > 0)
    }
}

/// What leap promises beside its peers, of the medians on one thread.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) what: &'static str,
    pub(crate) ratio: f64,
    pub(crate) at_least: f64,
}

impl Check {
    pub(crate) fn verdict(&self) -> &'static str {
        if self.ratio >= self.at_least { "holds" } else { "OVER" }
    }
}

impl Report<'_> {
    /// The allocations of one call.
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    pub(crate) fn allocations(&self, name: &str) -> Option<f64> {
        let (_, n) = self.allocations.iter().find(|(known, _)| *known == name)?;
        Some(*n as f64 / ALLOCATION_CALLS as f64)
    }

    /// Those of which both rows were measured.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let check = |what, ratio: Option<f64>, at_least| Some(Check { what, ratio: ratio?, at_least });
        let (clock, ticker) = (&self.by_its_clock, &self.by_ticker);
        let checks = [
            check(
                "the glue of today, by macro, to a guarded call",
                clock.ratio_of(glue::BY_MACRO, leap::GUARDED),
                3.0,
            ),
            check(
                "sentinel-core, flow + slow ratio, to a guarded call",
                clock.ratio_of(sentinel::GUARDED, leap::GUARDED),
                20.0,
            ),
            check("the same with its 1 ms ticker", ticker.ratio_of(sentinel::GUARDED, leap::GUARDED), 10.0),
            check(
                "sentinel-core, blocked, to a blocked call",
                clock.ratio_of(sentinel::BLOCKED, leap::BLOCKED),
                60.0,
            ),
        ];
        checks.into_iter().flatten().collect()
    }

    pub(crate) fn to_json(&self) -> String {
        let rows = |phase: &Phase<'_>, ticker: bool| -> Vec<Value> {
            let row = |timing: &Timing<'_>| {
                json!({
                    "name": timing.row.name,
                    "part": timing.row.part.title(),
                    "does": timing.row.does,
                    "lacks": timing.row.lacks,
                    "sentinel_ticker": ticker,
                    "threads": timing.setting.lanes().len(),
                    "resources": timing.setting.n_resources(),
                    "calls_per_round": timing.calls,
                    "rounds": timing.n_rounds(),
                    "apart": timing.apart,
                    "min_ns": timing.min(),
                    "median_ns": timing.median(),
                    "max_ns": timing.max(),
                    "floor_ratio": phase.to_floor(timing),
                    "leap_ratio": phase.to_leap(timing),
                    "allocations_per_call": self.allocations(timing.row.name),
                    "odd": timing.odd,
                })
            };
            phase.0.iter().map(row).collect()
        };
        let checks: Vec<Value> = self
            .checks()
            .iter()
            .map(|check| {
                json!({
                    "what": check.what,
                    "ratio": check.ratio,
                    "at_least": check.at_least,
                    "holds": check.ratio >= check.at_least,
                })
            })
            .collect();
        let rows = [rows(&self.by_its_clock, false), rows(&self.by_ticker, true)].concat();
        let report = json!({
            "versions": versions::all(),
            "rows": rows,
            "checks": checks,
        });
        format!("{report:#}\n")
    }
}
