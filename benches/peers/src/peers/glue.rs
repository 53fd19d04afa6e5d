//! The glue of today: governor, failsafe and metrics around one call, each as its README has it.

use std::sync::LazyLock;
use std::time::Instant;

use failsafe::{CircuitBreaker as _, Error};
use governor::{DefaultDirectRateLimiter, RateLimiter};
use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};
use metrics::{Counter, Histogram, counter, histogram};

use super::{failsafe as breakers, governor as limiters, metrics as recorder};
use crate::row::{Part, Row};

pub(crate) const BY_MACRO: &str = "the glue of today: by macro";

struct Guards {
    limiter: DefaultDirectRateLimiter,
    breaker: breakers::Breaker,
}

impl Guards {
    fn new() -> Self {
        Self { limiter: RateLimiter::direct(limiters::wide()), breaker: breakers::breaker() }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "it is written out in each function that is guarded so")]
    fn call(&self, x: u64) -> Result<u64, CallError> {
        self.limiter.check().map_err(|_| CallError::Limited)?;
        self.breaker.call(|| work(x)).map_err(|error| match error {
            Error::Rejected => CallError::Open,
            Error::Inner(error) => CallError::Failed(error),
        })
    }
}

#[expect(dead_code, reason = "carried, as in an application, and not looked at")]
enum CallError {
    Limited,
    Open,
    Failed(AppError),
}

/// The function of one lane: names and labels are literals, as in the crates' documentation.
macro_rules! lane {
    ($lane:ident, $label:literal) => {
        mod $lane {
            use super::{CallError, Cached, Guards, Instant, counter, histogram};

            #[inline(never)]
            pub(super) fn by_macro(guards: &Guards, x: u64) -> Result<u64, CallError> {
                let start = Instant::now();
                let result = guards.call(x);
                counter!("glued_calls_total", "resource" => $label).increment(1);
                histogram!("glued_call_seconds", "resource" => $label).record(start.elapsed());
                result
            }

            pub(super) fn cached() -> Cached {
                Cached {
                    guards: Guards::new(),
                    calls: counter!("glued_cached_calls_total", "resource" => $label),
                    seconds: histogram!("glued_cached_call_seconds", "resource" => $label),
                }
            }
        }
    };
}

lane!(one, "orders.1");
lane!(two, "orders.2");

struct Cached {
    guards: Guards,
    calls: Counter,
    seconds: Histogram,
}

#[inline(never)]
fn by_handle(Cached { guards, calls, seconds }: &Cached, x: u64) -> Result<u64, CallError> {
    let start = Instant::now();
    let result = guards.call(x);
    calls.increment(1);
    seconds.record(start.elapsed());
    result
}

pub(crate) fn rows() -> Vec<Row> {
    recorder::install();
    let lacks = "no sliding window, no slow calls, outcomes not told apart, no rule changed while it runs";
    vec![
        Row::new(
            BY_MACRO,
            Part::Guarded,
            "governor, failsafe, and of metrics a counter and a histogram by macro with a label",
            |lane, n| {
                static GUARDS: LazyLock<Lanes<Guards>> = LazyLock::new(|| Lanes::new(|_| Guards::new()));
                let guards = GUARDS.of(lane);
                match lane {
                    0 => repeat(n, |x| one::by_macro(guards, x).is_ok()),
                    _ => repeat(n, |x| two::by_macro(guards, x).is_ok()),
                }
            },
        )
        .lacking(lacks)
        .tidied_by(recorder::tidy),
        Row::new(
            "the glue of today: cached handles",
            Part::Guarded,
            "the same with the handles of metrics kept",
            |lane, n| {
                static CACHED: LazyLock<Lanes<Cached>> = LazyLock::new(|| {
                    Lanes::new(|lane| if lane == 0 { one::cached() } else { two::cached() })
                });
                let cached = CACHED.of(lane);
                repeat(n, |x| by_handle(cached, x).is_ok())
            },
        )
        .lacking(lacks)
        .tidied_by(recorder::tidy),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Cached, CallError, Guards, Instant, by_handle, counter, histogram, recorder};

    lane!(tested, "tested");

    #[test]
    fn every_call_is_recorded_and_failures_open_the_breaker() {
        recorder::install();
        let (guards, cached) = (Guards::new(), tested::cached());
        let n_until_open = |call: &dyn Fn(u64) -> Result<u64, CallError>| {
            assert!(call(0).is_ok());
            2 + (1..20).position(|_| matches!(call(u64::MAX), Err(CallError::Open))).unwrap()
        };
        let n_by_macro = n_until_open(&|x| tested::by_macro(&guards, x));
        let n_by_handle = n_until_open(&|x| by_handle(&cached, x));
        recorder::tidy();
        let rendered = recorder::rendered();
        let line = |name, n| format!("\n{name}{{resource=\"tested\"}} {n}\n");
        let lines = [
            line("glued_calls_total", n_by_macro),
            line("glued_call_seconds_count", n_by_macro),
            line("glued_cached_calls_total", n_by_handle),
            line("glued_cached_call_seconds_count", n_by_handle),
        ];
        let missing: Vec<_> = lines.iter().filter(|line| !rendered.contains(line.as_str())).collect();
        assert!(missing.is_empty(), "{missing:?} of {rendered}");
    }
}
