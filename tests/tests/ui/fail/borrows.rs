//! What the borrow checker has to say is said at the user's own tokens.

use leap_runtime::{Blocked, guarded};

#[guarded]
fn moved(sku: String) -> Result<String, Blocked> {
    drop(sku);
    Ok(sku)
}

#[guarded]
fn changes(sku: String) -> Result<String, Blocked> {
    sku.push('a');
    Ok(sku)
}

#[guarded]
fn returns_a_local() -> Result<&'static str, Blocked> {
    let name = String::new();
    Ok(name.as_str())
}

#[guarded]
async fn keeps(sku: &str) -> Result<&'static str, Blocked> {
    Ok(sku)
}

#[guarded(ok_if = |_| sku.is_empty())]
fn looks_at_what_is_gone(sku: String) -> Result<String, Blocked> {
    Ok(sku)
}

fn main() {}
