//! metrics: a counter and a histogram around a call, recorded for Prometheus.

use std::sync::LazyLock;
use std::time::Instant;

use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};
use metrics::{Counter, Histogram, counter, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::row::{Part, Row};

/// The recorder that people install, without its listener.
static RECORDER: LazyLock<PrometheusHandle> =
    LazyLock::new(|| PrometheusBuilder::new().install_recorder().expect("there is no other recorder"));

/// Everything that is recorded is recorded for real from here on.
pub(crate) fn install() {
    LazyLock::force(&RECORDER);
}

/// Histograms keep each value until somebody scrapes them, or does this.
pub(crate) fn tidy() {
    RECORDER.run_upkeep();
}

/// The text that Prometheus would be given.
#[cfg(test)]
pub(crate) fn rendered() -> String {
    RECORDER.render()
}

/// The functions of one lane: names and labels are literals, as in the crate's documentation.
macro_rules! lane {
    ($lane:ident, $label:literal) => {
        mod $lane {
            use super::{AppError, Counter, Histogram, Instant, counter, histogram, work};

            #[inline(never)]
            pub(super) fn by_macro(x: u64) -> Result<u64, AppError> {
                let start = Instant::now();
                let result = work(x);
                counter!("calls_total", "resource" => $label).increment(1);
                histogram!("call_seconds", "resource" => $label).record(start.elapsed());
                result
            }

            pub(super) fn handles() -> (Counter, Histogram) {
                (
                    counter!("cached_calls_total", "resource" => $label),
                    histogram!("cached_call_seconds", "resource" => $label),
                )
            }
        }
    };
}

lane!(one, "orders.1");
lane!(two, "orders.2");

#[inline(never)]
fn by_handle((calls, seconds): &(Counter, Histogram), x: u64) -> Result<u64, AppError> {
    let start = Instant::now();
    let result = work(x);
    calls.increment(1);
    seconds.record(start.elapsed());
    result
}

pub(crate) fn rows() -> Vec<Row> {
    install();
    let lacks = "no limit, no breaker, outcomes not told apart";
    vec![
        Row::new(
            "metrics: by macro",
            Part::Watched,
            "a counter and a histogram by macro with a label, two clock reads",
            |lane, n| match lane {
                0 => repeat(n, |x| one::by_macro(x).is_ok()),
                _ => repeat(n, |x| two::by_macro(x).is_ok()),
            },
        )
        .lacking(lacks)
        .tidied_by(tidy),
        Row::new("metrics: cached handles", Part::Watched, "the same by handles that are kept", |lane, n| {
            static HANDLES: LazyLock<Lanes<(Counter, Histogram)>> =
                LazyLock::new(|| Lanes::new(|lane| if lane == 0 { one::handles() } else { two::handles() }));
            let handles = HANDLES.of(lane);
            repeat(n, |x| by_handle(handles, x).is_ok())
        })
        .lacking(lacks)
        .tidied_by(tidy),
    ]
}

#[cfg(test)]
mod tests {
    use super::{AppError, Counter, Histogram, Instant, by_handle, counter, histogram, work};
    use super::{install, rendered, tidy};

    lane!(tested, "tested");

    #[test]
    fn every_call_is_recorded_by_macro_and_by_handle() {
        install();
        let handles = tested::handles();
        for x in 0..3 {
            tested::by_macro(x).unwrap();
            by_handle(&handles, x).unwrap();
        }
        tidy();
        let rendered = rendered();
        let lines = ["calls_total", "call_seconds_count", "cached_calls_total", "cached_call_seconds_count"]
            .map(|name| format!("\n{name}{{resource=\"tested\"}} 3\n"));
        let missing: Vec<_> = lines.iter().filter(|line| !rendered.contains(line.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} of {rendered}");
    }
}
