//! Directions, priorities, origins, entrances and lists of origins that cannot be.

use leap_runtime::{Blocked, guarded};

#[guarded(outbound)]
fn no_direction() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(outbound = true, direction = inbound)]
fn no_directions() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(inbound = yes, priority = 3)]
fn no_flags() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(inbound = in, entry_type = IN, prioritized)]
fn flags_of_sentinel() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(inbound, inbound = false, priority, priority)]
fn twice() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(origin, entrance = 5, limit_app = "a")]
fn no_names() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(entrance = "", allow(), deny = "b")]
fn nobody() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(allow("a", 5), deny("", b))]
fn not_in_quotes() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(allow("a"), deny("b"))]
fn both() -> Result<u8, Blocked> {
    Ok(1)
}

#[guarded(allow("a"), allow("b"))]
fn two_lists() -> Result<u8, Blocked> {
    Ok(1)
}

fn main() {}
