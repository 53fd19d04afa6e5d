//! A new limit beside the one in force: what it would do is seen before it does anything, and one call puts it in force.
//!
//! ```text
//! cargo run --release -p leap-examples --bin shadow
//! ```
//!
//! What to look at:
//!
//! - *would block* is the share of the calls that the candidate would have turned away, by its own windows and not by those
//!   of the rule in force: at 100 calls a second and a limit of 70 it is 30 %, whatever passes today.
//! - *would pass* are the calls that are turned away today and would not be.
//! - After the promotion the figures change sides: what the candidate foretold is what happens, and the rule that was in force
//!   goes on in shadow, so that the way back is one call too.
//! - The candidate for the breaker sees what the calls that run come to. It would have opened while the supplier failed.

#![allow(clippy::print_stdout, reason = "the table is what the program is for")]

use std::error::Error;
use std::time::Duration;

use leap_examples::bar;
use leap_runtime::{
    Behavior, BreakerRule, FlowRule, ManualClock, Mode, Outcome, Registry, ResourceStats, RuleSet,
    ShadowStats,
};

const RESOURCE: &str = "orders.create";
const SECONDS: u32 = 12;
/// Calls in each second.
const OFFERED: u32 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    let source = registry.source("limits");
    let limit = |qps| FlowRule::new(qps, Behavior::Reject);
    source.load(
        RuleSet::new()
            .named("create", RESOURCE, limit(40.0)?)
            .named("create", RESOURCE, limit(70.0)?.with_mode(Mode::Shadow))
            .named("supplier", RESOURCE, BreakerRule::error_ratio(0.5)?.with_mode(Mode::Shadow)),
    )?;

    println!("                          the rule in shadow             the breaker in shadow");
    println!("second  passed  blocked   of calls  would block  would pass   of calls  would block");
    let mut before = stats(&registry)?;
    for second in 0..SECONDS {
        match second {
            5 => println!("\n{}\n", source.promote("create")?),
            9 => println!("\n{}\n", source.demote("create")?),
            _ => {}
        }
        if matches!(second, 5 | 9) {
            // A rule that has changed begins to count anew.
            before = stats(&registry)?;
        }
        let is_failing = matches!(second, 2..4);
        let mut passed = 0;
        for _ in 0..OFFERED {
            if let Ok(entry) = registry.enter(RESOURCE) {
                passed += 1;
                entry.end(if is_failing { Outcome::Exception } else { Outcome::Success });
            }
            clock.advance(Duration::from_secs(1) / OFFERED);
        }
        let now = stats(&registry)?;
        let [flow, breaker] = [0, 1].map(|i| Told::between(&before.shadows()[i], &now.shadows()[i]));
        let row = format!(
            "{second:>6}  {passed:>6}  {:>7}   {:>8}  {:>10}%  {:>10}   {:>8}  {:>10}%  {}",
            OFFERED - passed,
            flow.asked,
            flow.percent(),
            flow.would_pass_blocked,
            breaker.asked,
            breaker.percent(),
            bar(passed, 2)
        );
        println!("{}", row.trim_end());
        before = now;
    }
    println!("\n{before}");
    Ok(())
}

fn stats(registry: &Registry) -> Result<ResourceStats, &'static str> {
    registry.stats(RESOURCE).ok_or("a rule names it")
}

/// What a rule in shadow said within a second.
struct Told {
    asked: u64,
    would_block: u64,
    would_pass_blocked: u64,
}

impl Told {
    fn between(before: &ShadowStats, now: &ShadowStats) -> Self {
        Self {
            asked: now.asked() - before.asked(),
            would_block: now.would_block() - before.would_block(),
            would_pass_blocked: now.would_pass_blocked() - before.would_pass_blocked(),
        }
    }

    fn percent(&self) -> u64 {
        (self.would_block * 100).checked_div(self.asked).unwrap_or_default()
    }
}
