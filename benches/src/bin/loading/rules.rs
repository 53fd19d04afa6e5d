//! The rules that are loaded, and the functions that they guard.

use std::time::Duration;

use leap_runtime::{Behavior, Blocked, BreakerRule, FlowRule, Precision, Rule, RuleSet, guarded};

/// The rules of a set.
pub(crate) const N_RULES: usize = 10_000;

/// Functions of their own, each with a call site.
macro_rules! sites {
    ($($name:ident)*) => {
        $(
            #[guarded(resource = concat!("site.", stringify!($name)))]
            #[inline(never)]
            fn $name(x: u64) -> Result<u64, Blocked> {
                Ok(x)
            }
        )*

        /// The guarded functions, with the names of their resources.
        pub(crate) const SITES: &[(&str, fn(u64) -> Result<u64, Blocked>)] =
            &[$((concat!("site.", stringify!($name)), $name)),*];
    };
}

sites! {
    a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 b0 b1 b2 b3 b4 b5 b6 b7 b8 b9 c0 c1 c2 c3 c4 c5 c6 c7 c8 c9 d0 d1
    d2 d3 d4 d5 d6 d7 d8 d9 e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 g0 g1 g2 g3
}

/// The resources that the rules of a set are for: those of the call sites, then those that are called by name.
pub(crate) fn resources(n: usize) -> Vec<String> {
    let sites = SITES.iter().map(|(name, _)| (*name).to_owned());
    sites.chain((0..).map(|i| format!("orders.of.customer.{i:05}"))).take(n).collect()
}

/// A limit that no caller here reaches: `version` makes it another one.
pub(crate) fn limit(version: u32) -> FlowRule {
    FlowRule::new(1e9 + f64::from(version), Behavior::Reject)
        .and_then(|rule| rule.with_precision(Precision::Strict))
        .expect("in range")
}

/// A breaker that does not trip here.
pub(crate) fn breaker(version: u32) -> BreakerRule {
    let slow = Duration::from_secs(60) + Duration::from_millis(version.into());
    BreakerRule::slow_ratio(slow, 0.5).expect("in range")
}

/// A limit under an id and a breaker for each resource. All rules of one version differ from those of another.
pub(crate) fn set(resources: &[String], version: u32) -> RuleSet {
    set_under(resources, "", version)
}

/// As [`set`], under ids that start with `prefix`.
pub(crate) fn set_under(resources: &[String], prefix: &str, version: u32) -> RuleSet {
    resources.iter().enumerate().fold(RuleSet::new(), |set, (i, name)| {
        set.named(format!("{prefix}{}", id(i)), name, limit(version)).breaker(name, breaker(version))
    })
}

/// The id of the limit of a resource.
pub(crate) fn id(resource: usize) -> String {
    format!("limit-{resource:05}")
}

/// What a patch makes of a limit.
pub(crate) fn patched(version: u32) -> Rule {
    limit(version).into()
}
