#![doc = "What the tests of leap share; and the README's code, as doc tests."]

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

pub mod json;
pub mod listed;
pub mod toolchain;
