//! Another company's service, which the shop needs and which has a bad time now and then.

use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;

use leap_runtime::{Blocked, guarded};
use tokio::time::{Instant, sleep};

use crate::error::ShopError;

/// How long the supplier takes when it is well.
const QUICK: Duration = Duration::from_millis(10);
/// And while it is in trouble, when it also fails.
const SLOW: Duration = Duration::from_millis(200);

/// The client of the supplier. Its calls are guarded, so that a supplier in trouble is left alone.
#[derive(Debug)]
pub(crate) struct Supplier {
    opened: Instant,
    /// When it is slow and fails, counted from its opening.
    trouble: Range<Duration>,
    last_cents: Mutex<Option<u32>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) cents: u32,
    /// Whether the supplier itself has just said so.
    pub(crate) is_live: bool,
}

impl Supplier {
    pub(crate) fn new(trouble: Range<Duration>) -> Self {
        Self { opened: Instant::now(), trouble, last_cents: Mutex::default() }
    }

    /// Asks for the price. While most answers are slow the supplier is not asked, and the last price known will do.
    #[guarded(
        resource = "prices.quote",
        slow_rt_ms = 100,
        slow_ratio = 0.5,
        window_ms = 500,
        open_ms = 1000,
        fallback = Self::last_quote
    )]
    pub(crate) async fn quote(&self) -> Result<Price, ShopError> {
        self.work().await?;
        let cents = 1_900 + self.opened.elapsed().subsec_millis() / 10;
        *self.last_cents.lock().expect("nothing panics under this lock") = Some(cents);
        Ok(Price { cents, is_live: true })
    }

    fn last_quote(&self, blocked: Blocked) -> Result<Price, ShopError> {
        match *self.last_cents.lock().expect("nothing panics under this lock") {
            Some(cents) => Ok(Price { cents, is_live: false }),
            None => Err(blocked.into()),
        }
    }

    /// Charges for an order. There is nothing to fall back on: while most charges fail, orders are refused.
    #[guarded(resource = "payments.charge", error_ratio = 0.5, window_ms = 500, open_ms = 1000)]
    pub(crate) async fn charge(&self) -> Result<(), ShopError> {
        self.work().await
    }

    async fn work(&self) -> Result<(), ShopError> {
        if self.trouble.contains(&self.opened.elapsed()) {
            sleep(SLOW).await;
            return Err(ShopError::SupplierFailed);
        }
        sleep(QUICK).await;
        Ok(())
    }
}
