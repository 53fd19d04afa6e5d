//! E05: an expansion trips no lint that the plain function does not.
#![deny(warnings, unused, missing_docs, unsafe_code, unreachable_pub, unused_qualifications, elided_lifetimes_in_paths)]
#![deny(let_underscore_drop, missing_debug_implementations, trivial_casts, trivial_numeric_casts, unused_lifetimes)]
#![deny(single_use_lifetimes, redundant_lifetimes, unit_bindings, explicit_outlives_requirements, non_ascii_idents)]

use std::time::Duration;

use leap_runtime::{Blocked, guarded};

const LIMIT: f64 = 10.0;

fn is_long(time: &Result<Duration, Blocked>) -> bool {
    time.as_ref().is_ok_and(|time| time.as_secs() > 1)
}

#[guarded("lints.all", qps = LIMIT, rate(limit = 1_000, per_ms = 60_000), max_concurrency = 3, slow_rt_ms = 100)]
fn short(time: Duration) -> Result<Duration, Blocked> { Ok(time) }

#[guarded(error_ratio = 0.5, min_calls = 10, ignore(_), ok_if = is_long, err_if = |time| time.is_err())]
async fn short_async(time: Duration) -> Result<Duration, Blocked> { Ok(time) }

#[guarded(
    origin = app,
    entrance = "web",
    qps = LIMIT,
    behavior = throttle,
    hot(key = app, qps = 10, except("a" => LIMIT)),
    hot(key = time.as_secs() + 1, max_concurrency = 3),
    hot(key = (time.as_millis()), name = "ms"),
    deny("b")
)]
fn keyed(app: &str, time: Duration) -> Result<usize, Blocked> { Ok(app.len() + time.as_secs() as usize) }

#[guarded(origin = *app, hot(key = &app, qps = 10), hot(key = _time.as_secs(), qps = LIMIT))]
async fn keyed_async(app: &&str, _time: Duration) -> Result<usize, Blocked> { Ok(app.len()) }

#[guarded(fallback = nothing)]
fn unit() {}

#[guarded(fallback = nothing)]
async fn unit_async() {}

fn nothing(_: Blocked) {}

struct Cart(Vec<String>);

impl Cart {
    #[guarded]
    fn owned(self) -> Result<usize, Blocked> { Ok(self.0.len()) }

    #[guarded]
    fn first(&self) -> Result<Option<&str>, Blocked> { Ok(self.0.first().map(String::as_str)) }
}

fn main() {
    short(Duration::ZERO).unwrap();
    drop(short_async(Duration::ZERO));
    keyed("a", Duration::ZERO).unwrap();
    drop(keyed_async(&"a", Duration::ZERO));
    unit();
    drop(unit_async());
    let cart = Cart(Vec::new());
    assert_eq!(cart.first().unwrap(), None);
    assert_eq!(cart.owned().unwrap(), 0);
}
