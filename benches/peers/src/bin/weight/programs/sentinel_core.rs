use std::sync::Arc;

use sentinel_core::{EntryBuilder, circuitbreaker, flow};

fn work(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn main() {
    sentinel_core::init_default().expect("its defaults are valid");
    flow::load_rules(vec![Arc::new(flow::Rule {
        resource: "work".into(),
        threshold: 100.0,
        calculate_strategy: flow::CalculateStrategy::Direct,
        control_strategy: flow::ControlStrategy::Reject,
        ..Default::default()
    })]);
    circuitbreaker::load_rules(vec![Arc::new(circuitbreaker::Rule {
        resource: "work".into(),
        threshold: 0.5,
        strategy: circuitbreaker::BreakerStrategy::SlowRequestRatio,
        retry_timeout_ms: 5_000,
        min_request_amount: 5,
        stat_interval_ms: 1_000,
        max_allowed_rt_ms: 200,
        ..Default::default()
    })]);
    let number = std::env::args().count() as u64;
    let entry = EntryBuilder::new("work".into()).build().expect("the first of 100");
    println!("{}", work(number));
    entry.exit();
}
