//! What the programs here measure with.

pub mod alloc;
pub mod flat;
pub mod floor;
pub mod lanes;
pub mod measure;
pub mod memory;
pub mod processes;
pub mod results;
pub mod work;
