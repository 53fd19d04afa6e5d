//! One function, called through two entrances and by several origins, with a limit for each of them.
//!
//! ```text
//! cargo run --release -p leap-examples --bin entrance
//! ```
//!
//! What to look at:
//!
//! - `orders.create` is called by shops. `app` has bought 20 calls per second (a rule for its origin); every other shop has
//!   5 (a rule for other origins, each counted on its own); `crawler` may not call at all (authority).
//! - Both orders and the nightly report read the stock, by the same function. What comes in by the entrance `jobs` is held
//!   to 30 reads per second there; the shops' reads are not.
//! - The tree at the end tells the reads of the two apart, and the figures below it who made them. A row of the report that
//!   gets no stock has passed, and ends with an error: an exception.
//!
//! Time is virtual, so all of it takes a moment.

#![allow(clippy::print_stdout, reason = "the tables are what the program is for")]

use std::error::Error;

use leap_examples::bar;
use leap_runtime::{
    Behavior, Blocked, Cause, FlowRule, ManualClock, Registry, ResourceStats, RuleError, RuleSet, Timestamp,
    guarded,
};

/// Who orders.
const SHOPS: [&str; 4] = ["app", "corner", "market", "crawler"];
/// What each of them orders in each second, and how many items the report asks for.
const LOAD: [([u32; SHOPS.len()], u32); 5] = [
    ([10, 2, 4, 1], 20),
    ([20, 5, 5, 10], 20),
    ([40, 5, 25, 10], 100),
    ([20, 25, 5, 10], 100),
    ([10, 2, 4, 1], 20),
];
const SECOND_MS: u32 = 1_000;

struct Order {
    shop: &'static str,
    item: u32,
}

#[guarded("orders.create", entrance = "shops", origin = order.shop, deny("crawler"))]
fn create(order: &Order) -> Result<u32, Blocked> {
    stock(order.item)
}

#[guarded("report.row", entrance = "jobs")]
fn report(item: u32) -> Result<u32, Blocked> {
    stock(item)
}

#[guarded("stock.read")]
fn stock(item: u32) -> Result<u32, Blocked> {
    Ok(item % 7)
}

fn rules() -> Result<RuleSet, RuleError> {
    let limit = |per_second| FlowRule::new(per_second, Behavior::Reject);
    Ok(RuleSet::new()
        .flow("orders.create", limit(20.0)?.for_origin("app")?)
        .flow("orders.create", limit(5.0)?.for_other_origins()?)
        .flow("stock.read", limit(30.0)?.for_entrance("jobs")?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = ManualClock::new();
    let registry = Registry::builder().clock(clock.clone()).build();
    println!("{}\n", registry.load(rules()?)?);

    println!(
        "        orders of a shop: passed / offered                 rows of the report, and a mark per two"
    );
    println!("second  {}        jobs", SHOPS.map(|shop| format!("{shop:>9}")).join("  "));
    for (second, (orders, rows)) in (0..).zip(LOAD) {
        let (mut created, mut read) = ([0; SHOPS.len()], 0);
        for ms in 0..SECOND_MS {
            clock.set(Timestamp::from_millis(u64::from(second * SECOND_MS + ms)));
            let is_due = |per_second| ms * per_second % SECOND_MS < per_second;
            registry.scope(|| {
                for (shop, per_second) in orders.into_iter().enumerate() {
                    if is_due(per_second) && create(&Order { shop: SHOPS[shop], item: ms }).is_ok() {
                        created[shop] += 1;
                    }
                }
                if is_due(rows) && report(ms).is_ok() {
                    read += 1;
                }
            });
        }
        let orders =
            created.iter().zip(orders).map(|(created, orders)| format!("{created:>4} / {orders:>2}  "));
        println!("{second:>6}  {}  {read:>4} /{rows:>4}  {}", orders.collect::<String>(), bar(read, 2));
    }

    println!("\n{}\n", registry.tree());
    for resource in ["orders.create", "stock.read"] {
        tell_shares(&registry.stats(resource).ok_or("it was called")?);
    }
    Ok(())
}

/// What came in by each entrance, and from each origin.
fn tell_shares(stats: &ResourceStats) {
    println!("{:<14}  passed  blocked  of which by authority", stats.resource());
    for share in stats.entrances().iter().chain(stats.origins()) {
        let totals = share.totals();
        let (passed, blocked) = (totals.passed(), totals.blocked());
        println!(
            "  {:<12}  {passed:>6}  {blocked:>7}  {:>21}",
            share.name(),
            totals.blocked_by(Cause::Authority)
        );
    }
}
