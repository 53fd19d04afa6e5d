//! E13, E27: what the attribute does not go on.

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
impl Shop {
    fn open(&self) {}
}

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

#[guarded(fallback = later)]
fn boxed(x: u8) -> std::pin::Pin<Box<dyn Future<Output = u8> + Send>> {
    Box::pin(async move { x })
}
fn later(x: u8, _: Blocked) -> std::pin::Pin<Box<dyn Future<Output = u8> + Send>> {
    boxed(x)
}

#[guarded]
fn opaque() -> impl Future<Output = Result<u8, Blocked>> {
    async { Ok(1) }
}

fn main() {
    constant().unwrap();
    Shop.open();
    let _ = (Door::Open, LIMIT);
}
