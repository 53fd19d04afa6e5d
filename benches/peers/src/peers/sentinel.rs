//! sentinel-core, the Rust edition of Sentinel, as its documentation has it.
//!
//! Without `init_default`, which would start threads that read the load of the machine: rules work without.

use std::sync::{Arc, Once};

use leap_benches::work::{AppError, repeat, work};
use sentinel_core::base::TrafficType::{self, Inbound, Outbound};
use sentinel_core::circuitbreaker::{self, BreakerStrategy};
use sentinel_core::{EntryBuilder, flow};

use crate::row::{Part, Row};

pub(crate) const GUARDED: &str = "sentinel-core: flow + slow ratio";
pub(crate) const BLOCKED: &str = "sentinel-core: blocked";

const FLOW: [&str; 2] = ["flow/1", "flow/2"];
const FLOW_AND_SLOW: [&str; 2] = ["flow-slow/1", "flow-slow/2"];
const USED_UP: [&str; 2] = ["blocked/1", "blocked/2"];

fn load() {
    static LOADED: Once = Once::new();
    LOADED.call_once(|| {
        let flow = |name: &str, threshold| {
            Arc::new(flow::Rule {
                resource: name.to_owned(),
                threshold,
                calculate_strategy: flow::CalculateStrategy::Direct,
                control_strategy: flow::ControlStrategy::Reject,
                ..flow::Rule::default()
            })
        };
        let slow = |name: &str| {
            Arc::new(circuitbreaker::Rule {
                resource: name.to_owned(),
                strategy: BreakerStrategy::SlowRequestRatio,
                threshold: 0.5,
                max_allowed_rt_ms: 1_000,
                min_request_amount: 10,
                retry_timeout_ms: 3_000,
                stat_interval_ms: 1_000,
                stat_sliding_window_bucket_count: 10,
                ..circuitbreaker::Rule::default()
            })
        };
        let passing = FLOW.iter().chain(&FLOW_AND_SLOW).map(|name| flow(name, 1e9));
        let blocking = USED_UP.iter().map(|name| flow(name, 0.0));
        flow::load_rules(passing.chain(blocking).collect());
        circuitbreaker::load_rules(FLOW_AND_SLOW.iter().map(|name| slow(name)).collect());
    });
}

/// The error is the crate's own text for a block.
#[inline(never)]
fn guarded(name: &str, traffic: TrafficType, x: u64) -> sentinel_core::Result<Result<u64, AppError>> {
    let entry = EntryBuilder::new(name.into()).with_traffic_type(traffic).build()?;
    let result = work(x);
    if result.is_err() {
        entry.set_err(sentinel_core::Error::msg("failed"));
    }
    entry.exit();
    Ok(result)
}

fn passes(name: &str, traffic: TrafficType, n: u64) -> u64 {
    repeat(n, |x| matches!(guarded(name, traffic, x), Ok(Ok(_))))
}

/// The functions of one lane: the resource of the macro is the function's name.
macro_rules! lane {
    ($function:ident) => {
        #[sentinel_macros::flow(threshold = 1_000_000_000.0)]
        #[inline(never)]
        fn $function(x: u64) -> Result<u64, AppError> {
            work(x)
        }
    };
}

lane!(flow_one);
lane!(flow_two);

pub(crate) fn rows() -> Vec<Row> {
    load();
    vec![
        Row::new(
            GUARDED,
            Part::Guarded,
            "EntryBuilder: flow rule, breaker on the share of slow calls, its statistics",
            |lane, n| passes(FLOW_AND_SLOW[lane], Outbound, n),
        )
        .lacking(LACKS)
        .also_with_ticker(),
        Row::new(
            "sentinel-core: flow",
            Part::Limited,
            "EntryBuilder: flow rule, its statistics",
            |lane, n| passes(FLOW[lane], Outbound, n),
        )
        .lacking(LACKS)
        .also_with_ticker(),
        Row::new(
            "sentinel-core: flow, inbound",
            Part::Limited,
            "the same of calls that come in, as its documentation has it: numbers of the whole system too",
            |lane, n| passes(FLOW[lane], Inbound, n),
        )
        .lacking(LACKS),
        Row::new(
            "sentinel-core: #[flow]",
            Part::Limited,
            "its attribute: inbound, and offers its rule anew with each call",
            |lane, n| match lane {
                0 => repeat(n, |x| matches!(flow_one(x), Ok(Ok(_)))),
                _ => repeat(n, |x| matches!(flow_two(x), Ok(Ok(_)))),
            },
        )
        .lacking(LACKS)
        .also_with_ticker(),
        Row::new(
            BLOCKED,
            Part::Blocked,
            "EntryBuilder: flow rule of 0; the block is counted and becomes an error with a text",
            |lane, n| repeat(n, |x| guarded(USED_UP[lane], Outbound, x).is_err()),
        )
        .lacking(LACKS)
        .also_with_ticker(),
    ]
}

const LACKS: &str = "no exact window, times in whole milliseconds, no histogram, and no end by itself: an early return or \
    a panic leaves a call running";

/// From here on all of it reads the time that a thread writes down each millisecond.
pub(crate) fn start_ticker() {
    sentinel_core::utils::start_time_ticker();
}

#[cfg(test)]
mod tests {
    use super::{FLOW, FLOW_AND_SLOW, Outbound, USED_UP, circuitbreaker, flow, flow_one, guarded, load};

    #[test]
    fn every_resource_has_its_rules() {
        load();
        for name in FLOW.iter().chain(&FLOW_AND_SLOW).chain(&USED_UP) {
            assert_eq!(flow::get_rules_of_resource(&(*name).to_owned()).len(), 1);
        }
        for name in FLOW_AND_SLOW {
            assert_eq!(circuitbreaker::get_breakers_of_resource(&name.to_owned()).len(), 1);
        }
    }

    #[test]
    fn the_attribute_adds_its_rule_once() {
        for x in 0..3 {
            flow_one(x).unwrap().unwrap();
        }
        assert_eq!(flow::get_rules_of_resource(&"flow_one".to_owned()).len(), 1);
    }

    #[test]
    fn a_block_is_an_error_with_a_text() {
        load();
        let text = guarded(USED_UP[0], Outbound, 0).unwrap_err().to_string();
        assert!(text.to_lowercase().contains("block"), "{text}");
    }
}
