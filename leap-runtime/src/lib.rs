//! Flow control and circuit breaking for functions, by one attribute.
//!
//! Every call of a guarded function enters a *resource*, is let through or blocked by rules, is counted, and is
//! counted again when it ends, however it ends.
//!
//! ```
//! use leap_runtime::{Blocked, guarded};
//!
//! #[derive(Debug)]
//! enum AppError { Blocked(Blocked) }
//!
//! impl From<Blocked> for AppError {
//!     fn from(blocked: Blocked) -> Self {
//!         Self::Blocked(blocked)
//!     }
//! }
//!
//! #[guarded(resource = "orders.create", qps = 100, slow_rt_ms = 200)]
//! fn create(item: &str) -> Result<u64, AppError> {
//!     Ok(item.len() as u64)
//! }
//!
//! #[guarded(resource = "stock.read", max_concurrency = 32, slow_rt_ms = 50, fallback = last_known)]
//! fn stock(sku: &str) -> u32 {
//!     sku.len() as u32
//! }
//! fn last_known(_sku: &str, _blocked: Blocked) -> u32 {
//!     0
//! }
//!
//! create("book")?;
//! let stats = leap_runtime::registry().stats("orders.create").expect("it was called");
//! assert_eq!(stats.second().passed(), 1);
//! # Ok::<(), AppError>(())
//! ```
//!
//! # Where to look
//!
//! - [`guarded`]: the attribute and all its arguments.
//! - [`guide`]: which rule to choose when, and a page for each kind.
//! - [`Registry`]: enter by name, load rules, ask for statistics, have a registry of your own.
//! - [`RuleSet`], and rules as data: [`FlowRule`], [`IsolationRule`], [`BreakerRule`], [`HotRule`], [`AuthorityRule`],
//!   [`SystemRule`].
//! - [`Source`], [`guide::changing_rules`]: rules changed while calls run, tried in shadow, compared and taken back.
//! - [`Blocked`], [`FromBlocked`]: what a blocked call is told.
//! - [`Context`], [`InContext`]: by which entrance calls come in, and from whom; [`CallTree`]: who entered what.
//! - [`ResourceStats`], [`SystemStats`]: what happened, by resource, origin, entrance and hot value; and to the whole.
//! - [`BreakerHandle`]: breakers moved by hand.
//! - [`Observer`]: be told of blocks, transitions, loads.
//! - [`Check`], [`SystemProbe`], [`Sleep`], [`Clock`]: checks, figures of the machine, a timer and a time of your own.
//! - [`Limiter`], [`LeapArray`], [`HotLeapArray`]: the limiter and the sliding windows, alone.
//! - [`ManualClock`]: tests on virtual time.
//!
//! # Waiting
//!
//! A call waits only where a rule says so (`behavior = throttle`, `queue_ms`, `priority`), and never longer. A sync function
//! parks its thread; an async one awaits, by tokio's timer or any other [`Sleep`], and may be dropped at any moment. See
//! the [guide](guide#what-waits-and-what-blocks).
//!
//! # Features
//!
//! | feature | default | what it adds |
//! | --- | --- | --- |
//! | `tokio` | yes | [`TokioClock`], and the timer by which async calls wait; a paused clock works |
//! | `quanta` | yes | the system clock reads the time stamp counter: about half the cost of the OS clock |
//! | `tracing` | no | `TracingObserver`: transitions, loads and blocks as `tracing` events |
//! | `serde` | no | [rules as data](guide::fields): `RuleSet`, `Rule` and `RulePatch` from any format, and to it; `Serialize` for statistics and load reports |
//! | `catalog` | no | `catalog()`: every guarded function before its first call, with its place and its rules; `Registry::unmatched_rules`: the rules from outside that are for none of them |
//! | `stream` | no | `#[guarded]` on functions that return a `Stream` of `futures-core` |
//!
//! Without default features the crate builds on `std` alone; features only add.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod named;
mod seldom;
mod sync;

pub mod clock;
mod timer;
pub mod window;

mod blocked;
mod event;
mod history;
mod key;
mod rule;
mod rulebook;

mod check;
mod current;
mod environment;
mod node;
mod plans;

mod context;
mod share;
mod tree;

mod breakers;
mod callsite;
#[cfg(feature = "catalog")]
mod catalog;
mod entry;
mod registry;
mod resource;
mod roster;
mod sources;

#[doc(hidden)]
pub mod __private;
pub mod guide;
mod limiter;
mod stats;
#[cfg(feature = "tracing")]
mod tracing;

pub use blocked::{Blocked, Cause, FromBlocked};
pub use breakers::BreakerHandle;
#[cfg(feature = "catalog")]
pub use catalog::{GuardedFunction, UnmatchedRule, catalog};
pub use check::call::{Call, Check, Ended, Verdict};
pub use check::figures::ShadowStats;
pub use check::system::{DimensionStats, HostProbe, SystemProbe, SystemSample, SystemStats};
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use context::{Context, Contextual, InContext};
pub use current::{Current, current};
pub use entry::Entry;
pub use event::{ContainedPanic, LoadReport, Observer, Outcome, Overflow, Switched, Transition};
pub use history::{RuleAction, RuleEvent};
pub use key::{Hashed, Key, ToKey};
pub use leap_macros::guarded;
pub use limiter::{Limiter, Refused};
pub use registry::{Builder, CheckId, EnterWith, InRegistry, InstallError, Registry, Scoped, registry};
pub use roster::RosterStats;
pub use rule::{
    AuthorityRule, Behavior, BreakerRule, BreakerState, BreakerWindow, Dimension, FlowRule, HotRule,
    IsolationRule, KeySelector, LoadError, Mode, NamedRule, Precision, Recovery, Rejection, Relation, Rule,
    RuleChange, RuleError, RuleId, RuleKind, RuleSet, RuleState, Strategy, SystemRule,
};
#[cfg(feature = "serde")]
pub use rule::{RuleData, RulePatch};
pub use sources::Source;
pub use stats::{
    BreakerStats, HotStats, HotValue, Percentiles, ResourceStats, ShareStats, StatsTable, Traffic,
};
pub use timer::Sleep;
#[cfg(feature = "tracing")]
pub use tracing::TracingObserver;
pub use tree::{CallNode, CallTree};
pub use window::{HotLeapArray, LeapArray};
