//! Guarded functions of a library, which nobody calls: the catalogue of a program that names this crate has them all.

use leap_runtime::{Blocked, guarded};

/// Called by nobody.
///
/// # Errors
///
/// [`Blocked`]
#[guarded("tests.public")]
pub fn public() -> Result<(), Blocked> {
    Ok(())
}

/// Called by nobody, and with no type.
///
/// # Errors
///
/// [`Blocked`]
#[guarded("tests.generic")]
pub fn generic<T>(value: T) -> Result<T, Blocked> {
    Ok(value)
}

#[expect(dead_code, reason = "a function that nobody can call is listed too")]
mod private {
    use super::{Blocked, guarded};

    #[guarded("tests.private")]
    fn private() -> Result<(), Blocked> {
        Ok(())
    }
}
