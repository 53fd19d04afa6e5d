//! E27: `impl` blocks whose methods cannot be guarded, or not so.

use leap_runtime::{Blocked, guarded};

struct Shop;

#[guarded("shop", qps = 10)]
impl Shop {
    fn named_twice(&self) -> Result<u8, Blocked> {
        Ok(1)
    }

    #[guarded(skip)]
    fn left_out(&self) -> u8 {
        2
    }
}

#[guarded(qsp = 10, skip)]
impl Shop {
    fn misspelt(&self) -> Result<u8, Blocked> {
        Ok(3)
    }
}

#[guarded(qps = 10)]
impl Shop {
    const LIMIT: u8 = 1;

    #[guarded(skip)]
    fn new() -> Self {
        Self
    }
}

#[guarded(qps = Self::RATE)]
impl Shop {
    const RATE: f64 = 1.0;

    const fn constant(&self) -> u8 {
        4
    }

    fn number(&self) -> u8 {
        5
    }

    #[guarded(qps = -1)]
    fn of_its_own(&self) -> Result<u8, Blocked> {
        Ok(6)
    }
}

#[guarded]
impl Shop {
    fn half_typed(&self) -> Result<u8, Blocked> {
        let sum = self.;
        Ok(sum)
    }

    fn wrong_type(&self) -> Result<u8, Blocked> {
        Ok("a")
    }
}

#[guarded]
impl Shop {
    #[cfg_attr(unix, guarded(skip))]
    fn perhaps(&self) -> Result<u8, Blocked> {
        Ok(1)
    }
}

fn main() {
    let shop = Shop::new();
    let _ = (shop.named_twice(), shop.left_out(), shop.misspelt(), Shop::LIMIT);
    let _ = (shop.constant(), shop.number(), shop.of_its_own(), shop.half_typed());
}
