//! Async calls: each thread has a current-thread runtime of tokio's, and a batch is one task of it.

use std::hint::black_box;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: Runtime =
        Builder::new_current_thread().enable_time().build().expect("a timer needs nothing of the system");
}

/// Awaits so many calls, and counts those that were not as they should.
pub(crate) fn repeat(n: u64, mut is_right: impl AsyncFnMut(u64) -> bool) -> u64 {
    let all = async {
        let mut odd = 0;
        for x in 0..n {
            odd += u64::from(!is_right(black_box(x)).await);
        }
        odd
    };
    RUNTIME.with(|runtime| runtime.block_on(all))
}
