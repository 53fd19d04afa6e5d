//! E13: every attribute, qualifier and visibility is kept, once; those inside a body speak of the function.
#![deny(warnings, missing_docs)]

use leap_runtime::{Blocked, guarded};

/// Says hello.
#[guarded]
/// In two lines.
#[must_use]
#[inline(always)]
pub fn documented() -> Result<u8, Blocked> {
    //! And a third inside.
    #![allow(unused_variables)]
    let unused = 1;
    Ok(1)
}

#[guarded]
#[cfg(any())]
fn is_not_there() -> Nothing {}

#[cfg(all())]
#[guarded]
#[deprecated]
pub(crate) fn old() -> Result<u8, Blocked> {
    Ok(1)
}

mod inner {
    use super::*;

    #[guarded]
    pub(in super) fn visible() -> Result<u8, Blocked> {
        Ok(1)
    }

    #[guarded]
    pub(crate) unsafe fn not_safe(pointer: *const u8) -> Result<u8, Blocked> {
        Ok(unsafe { *pointer })
    }

    #[guarded]
    pub(crate) async unsafe fn not_safe_async(pointer: *const u8) -> Result<u8, Blocked> {
        Ok(unsafe { *pointer })
    }

    #[guarded(fallback = zero)]
    pub(crate) extern "C" fn for_c(number: u8) -> u8 {
        number
    }

    fn zero(_: u8, _: Blocked) -> u8 {
        0
    }

    #[guarded]
    pub(crate) fn of_params(#[allow(unused_variables)] a: u8, #[cfg(any())] b: Nothing) -> Result<u8, Blocked> {
        Ok(1)
    }
}

fn main() {
    assert_eq!(documented().unwrap(), 1);
    #[allow(deprecated)]
    let old = old();
    old.unwrap();
    inner::visible().unwrap();
    unsafe { inner::not_safe(&1) }.unwrap();
    drop(unsafe { inner::not_safe_async(&1) });
    assert_eq!(inner::for_c(1), 1);
    assert_eq!(inner::of_params(1).unwrap(), 1);
}
