//! What the programs here measure with.

pub mod alloc;
pub mod results;
