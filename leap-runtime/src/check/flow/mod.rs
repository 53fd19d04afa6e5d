//! Flow rules at work.

#[allow(
    dead_code,
    clippy::clone_on_copy,
    reason = "used once relations are wired; rules are going to hold names"
)]
pub(crate) mod associated;
#[allow(
    dead_code,
    clippy::clone_on_copy,
    reason = "used once relations are wired; rules are going to hold names"
)]
pub(crate) mod scoped;
pub(crate) mod windows;
