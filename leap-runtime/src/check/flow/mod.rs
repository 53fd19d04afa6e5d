//! Flow rules at work.

pub(crate) mod windows;
