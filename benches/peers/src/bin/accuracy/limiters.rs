//! The limiters, each asked for one permit at a time, without waiting.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use leap_runtime::{Behavior, Clock, FlowRule, Limiter, ManualClock, Precision, SystemClock, Timestamp};
use sentinel_core::{EntryBuilder, flow};
use tokio::runtime::Runtime;
use tower::{Layer, Service};
use tower_resilience_ratelimiter::{RateLimiterLayer, WindowType};

use crate::log::INTERVAL;

/// A limiter on real clocks.
pub(crate) type Ask = Box<dyn Fn() -> bool + Send + Sync>;
/// A limiter whose clock is set to a moment, which is not before the last, and which is asked then.
pub(crate) type AskAt = Box<dyn FnMut(Timestamp) -> bool>;

/// What it promises of its limit, as far as it is checked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Never over, and as a sliding log.
    Exact,
    /// Never over, and within a bucket of a sliding log.
    Strict,
    None,
}

/// A kind of limiter, of which as many are made as there are loads.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) promise: Promise,
    /// `limit` per second. The clock is that of the measurement, for those that take one.
    pub(crate) real: fn(limit: u32, clock: &SystemClock) -> Ask,
    /// None where time cannot be set.
    pub(crate) settable: Option<fn(limit: u32) -> AskAt>,
}

pub(crate) const EXACT: Kind = Kind {
    name: "leap exact",
    promise: Promise::Exact,
    real: |limit, clock| leap(limit, Precision::Exact, 100, clock),
    settable: Some(|limit| leap_at(limit, Precision::Exact, 100)),
};

pub(crate) const STRICT: Kind = Kind {
    name: "leap strict, 100 buckets",
    promise: Promise::Strict,
    real: |limit, clock| leap(limit, Precision::Strict, 100, clock),
    settable: Some(|limit| leap_at(limit, Precision::Strict, 100)),
};

pub(crate) const GOVERNOR: Kind = Kind {
    name: "governor, burst = limit",
    promise: Promise::None,
    real: |limit, _| governor(limit, limit),
    settable: Some(|limit| governor_at(limit, limit)),
};

/// All of them; what starts threads of its own comes last.
pub(crate) const ALL: [Kind; 10] = [
    EXACT,
    STRICT,
    Kind {
        name: "leap sentinel, 2 buckets",
        promise: Promise::None,
        real: |limit, clock| leap(limit, Precision::Sentinel, 2, clock),
        settable: Some(|limit| leap_at(limit, Precision::Sentinel, 2)),
    },
    GOVERNOR,
    Kind {
        name: "governor, burst 1",
        promise: Promise::None,
        real: |limit, _| governor(limit, 1),
        settable: Some(|limit| governor_at(limit, 1)),
    },
    Kind {
        name: "ratelimit",
        promise: Promise::None,
        real: |limit, _| ratelimit(limit),
        settable: Some(ratelimit_at),
    },
    Kind {
        name: "leaky-bucket, try only",
        promise: Promise::None,
        real: |limit, _| leaky_bucket(limit),
        settable: Some(|limit| on_tokio(move || leaky_bucket(limit))),
    },
    Kind {
        name: "tower-resilience, fixed",
        promise: Promise::None,
        real: |limit, _| tower_resilience(limit, WindowType::Fixed),
        settable: Some(|limit| on_tokio(move || tower_resilience(limit, WindowType::Fixed))),
    },
    Kind {
        name: "tower-resilience, sliding log",
        promise: Promise::None,
        real: |limit, _| tower_resilience(limit, WindowType::SlidingLog),
        settable: Some(|limit| on_tokio(move || tower_resilience(limit, WindowType::SlidingLog))),
    },
    Kind {
        name: "sentinel-core",
        promise: Promise::None,
        real: |limit, _| sentinel_core(limit),
        settable: None,
    },
];

thread_local! {
    static FIRST_READING: Cell<Option<Timestamp>> = const { Cell::new(None) };
}

/// The clock of the measurement, which keeps the first reading of each thread since it was last taken away: it is the one
/// that leap decides by, and writes down.
#[derive(Clone, Debug)]
struct Watched(SystemClock);

impl Clock for Watched {
    #[inline]
    fn now(&self) -> Timestamp {
        let now = self.0.now();
        FIRST_READING.with(|first| first.set(first.get().or(Some(now))));
        now
    }
}

/// The reading by which this thread's last call was decided, where that can be seen.
#[inline]
pub(crate) fn take_reading() -> Option<Timestamp> {
    FIRST_READING.take()
}

fn rule(limit: u32, precision: Precision, n_buckets: u32) -> FlowRule {
    let rule = FlowRule::new(limit.into(), Behavior::Reject).and_then(|rule| rule.with_precision(precision));
    rule.and_then(|rule| rule.with_buckets(n_buckets))
        .expect("a small limit, and buckets that divide a second")
}

fn leap(limit: u32, precision: Precision, n_buckets: u32, clock: &SystemClock) -> Ask {
    let limiter = Limiter::with_clock(rule(limit, precision, n_buckets), Watched(clock.clone()));
    Box::new(move || limiter.try_acquire(1).is_ok())
}

pub(crate) fn leap_at(limit: u32, precision: Precision, n_buckets: u32) -> AskAt {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(rule(limit, precision, n_buckets), clock.clone());
    Box::new(move |now| {
        clock.set(now);
        limiter.try_acquire(1).is_ok()
    })
}

fn quota(limit: u32, burst: u32) -> Quota {
    let [limit, burst] = [limit, burst].map(|n| NonZeroU32::new(n).expect("limits here are not 0"));
    Quota::per_second(limit).allow_burst(burst)
}

fn governor(limit: u32, burst: u32) -> Ask {
    let limiter = RateLimiter::direct(quota(limit, burst));
    Box::new(move || limiter.check().is_ok())
}

fn governor_at(limit: u32, burst: u32) -> AskAt {
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(quota(limit, burst), clock.clone());
    let mut shown = Timestamp::ZERO;
    Box::new(move |now| {
        clock.advance(now.since(shown));
        shown = now;
        limiter.check().is_ok()
    })
}

/// As full as it can be, as it is after a second of rest.
fn ratelimit(limit: u32) -> Ask {
    let limit = limit.into();
    let limiter = ratelimit::Ratelimiter::builder(limit).initial_available(limit).build();
    let limiter = limiter.expect("it begins no fuller than full");
    Box::new(move || limiter.try_wait().is_ok())
}

/// Nanoseconds since the start, as `ratelimit` asks for them.
struct Hand(Arc<AtomicU64>);

impl ratelimit::Clock for Hand {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

fn ratelimit_at(limit: u32) -> AskAt {
    let (hand, limit) = (Arc::<AtomicU64>::default(), limit.into());
    let limiter =
        ratelimit::Builder::with_clock(limit, Hand(Arc::clone(&hand))).initial_available(limit).build();
    let limiter = limiter.expect("it begins no fuller than full");
    Box::new(move |now| {
        hand.store(now.as_nanos(), Relaxed);
        limiter.try_wait().is_ok()
    })
}

/// A tenth of the limit each 100 ms, which is its default interval.
fn leaky_bucket(limit: u32) -> Ask {
    let limit = limit as usize;
    let limiter = leaky_bucket::RateLimiter::builder().max(limit).initial(limit).refill(limit / 10).build();
    Box::new(move || limiter.try_acquire(1))
}

/// Asked by a call that is polled once: with no time to wait it is answered then.
fn tower_resilience(limit: u32, window: WindowType) -> Ask {
    let layer = RateLimiterLayer::builder()
        .limit_for_period(limit as usize)
        .refresh_period(INTERVAL)
        .timeout_duration(Duration::ZERO)
        .window_type(window)
        .build()
        .expect("neither limit nor period is 0");
    let service = layer.layer(tower::service_fn(|()| -> Ready<Result<(), Infallible>> { ready(Ok(())) }));
    Box::new(move || {
        let answer = pin!(service.clone().call(()));
        match answer.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer.is_ok(),
            Poll::Pending => false,
        }
    })
}

/// One that goes by tokio's clock, on a runtime of its own whose clock stands still between calls.
fn on_tokio(make: impl FnOnce() -> Ask) -> AskAt {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime: Runtime = runtime.expect("a runtime without threads and files");
    let ask = {
        let _inside = runtime.enter();
        make()
    };
    let mut shown = Timestamp::ZERO;
    Box::new(move |now| {
        if now > shown {
            runtime.block_on(tokio::time::advance(now.since(shown)));
            shown = now;
        }
        let _inside = runtime.enter();
        ask()
    })
}

/// By one flow rule, on a resource of its own. Its rules are global, and loading replaces all of them.
fn sentinel_core(limit: u32) -> Ask {
    static N_MADE: AtomicU64 = AtomicU64::new(0);
    let n_made = N_MADE.fetch_add(1, Relaxed);
    if n_made == 0 {
        sentinel_core::init_default().expect("its defaults are valid");
    }
    let resource = format!("accuracy.{n_made}");
    let rule = flow::Rule {
        resource: resource.clone(),
        threshold: limit.into(),
        stat_interval_ms: 1_000,
        calculate_strategy: flow::CalculateStrategy::Direct,
        control_strategy: flow::ControlStrategy::Reject,
        ..flow::Rule::default()
    };
    flow::load_rules(vec![Arc::new(rule)]);
    Box::new(move || EntryBuilder::new(resource.clone()).build().map(|entry| entry.exit()).is_ok())
}
