//! Calls through call sites that are made here, not by the attribute: 100 000 functions are too many to write down.

use std::hint::black_box;

use leap_runtime::__private::{self, CallSite, Outcome};
use leap_runtime::Registry;

/// A call site of its own in the global registry, as the attribute makes one for each function, and kept as long.
pub(crate) fn site(name: String) -> &'static CallSite {
    let name: &'static str = name.leak();
    Box::leak(Box::new(CallSite::new(Some(name), || "growth", &[])))
}

/// Calls what the attribute makes of a function, and tells whether the call was let through.
#[inline]
pub(crate) fn call(site: &'static CallSite, x: u64) -> bool {
    match site.enter(1) {
        Ok(mut entry) => {
            black_box(__private::run(&mut entry, || black_box(x), |_| Outcome::Success));
            true
        }
        Err(blocked) => {
            let _ = black_box(blocked);
            false
        }
    }
}

#[inline]
pub(crate) fn call_by_name(registry: &Registry, name: &str, x: u64) -> bool {
    registry.enter(name).is_ok_and(|entry| entry.run(|| Ok::<_, ()>(black_box(x))).is_ok())
}

/// Calls so often, and counts the calls that were not as they should.
#[inline]
pub(crate) fn repeat(n: u64, mut is_right: impl FnMut(u64) -> bool) -> u64 {
    (0..n).map(|x| u64::from(!is_right(black_box(x)))).sum()
}
