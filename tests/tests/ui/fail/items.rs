//! E13, E27: what the attribute does not go on.

use std::pin::Pin;

use leap_runtime::{Blocked, guarded};

#[guarded]
const fn constant() -> Result<u8, Blocked> {
    Ok(1)
}

trait Stock {
    #[guarded]
    fn count(&self) -> Result<u32, Blocked>;
}

#[guarded(qps = 1)]
struct Shop;

#[guarded]
enum Door {
    Open,
}

#[guarded]
trait Trait {}

#[guarded]
mod module {}

#[guarded]
const LIMIT: u8 = 1;

#[guarded]
type Alias = u8;

#[guarded]
fn not_pinned() -> Box<dyn Future<Output = Result<u8, Blocked>> + Unpin> {
    Box::new(std::future::ready(Ok(1)))
}

#[guarded(skip)]
fn left_out() -> Pin<Box<u8>> {
    Box::pin(1)
}

fn main() {
    constant().unwrap();
    let _ = (Door::Open, LIMIT, Shop, not_pinned(), left_out());
}
