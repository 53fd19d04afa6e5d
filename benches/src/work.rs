//! What every row does: one plain function, and calling it many times.

use std::hint::black_box;

use leap_runtime::Blocked;

/// The error of the functions that are guarded: it keeps the block, as an application's would.
#[derive(Debug)]
pub enum AppError {
    Blocked(Blocked),
    Failed,
}

impl From<Blocked> for AppError {
    fn from(blocked: Blocked) -> Self {
        Self::Blocked(blocked)
    }
}

pub fn is_blocked(result: &Result<u64, AppError>) -> bool {
    matches!(result, Err(AppError::Blocked(_)))
}

/// The body of every function that is measured.
///
/// # Errors
///
/// Of the highest number.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a call inside the body would be part of the plain function's time")]
pub fn work(x: u64) -> Result<u64, AppError> {
    if x == u64::MAX {
        return Err(AppError::Failed);
    }
    Ok(x.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Calls so often, and counts the calls that were not as they should.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "the loop belongs to the row, so that the call in it is a direct one"
)]
pub fn repeat(n: u64, mut is_right: impl FnMut(u64) -> bool) -> u64 {
    (0..n).map(|x| u64::from(!is_right(black_box(x)))).sum()
}
