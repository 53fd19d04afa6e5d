//! `#[guarded]` on an `impl` block.
#![expect(
    clippy::manual_async_fn,
    clippy::panic,
    clippy::unused_self,
    reason = "functions of every shape, which stand here for their shape"
)]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use leap_runtime::{Blocked, ManualClock, Registry, guarded};

type Answer = Result<u8, Blocked>;

struct Shop<T, const N: usize>(T);

trait Open {
    type Door;
    const DOORS: u8;

    fn open(&self, n: u8) -> Answer;

    fn is_open(&self) -> bool {
        true
    }
}

#[guarded(qps = 1, ignore(_))]
impl<T: Clone, const N: usize> Shop<T, N>
where
    T: Into<u8>,
{
    #![allow(clippy::needless_pass_by_value, reason = "an attribute inside of the block")]

    /// A constant, whose braces end nothing.
    const BRACES: [u8; 1] = { [1] };

    /// Makes one.
    #[guarded(skip)]
    const fn new(of: T) -> Self {
        Self(of)
    }

    fn first(&self) -> Answer {
        Ok(self.0.clone().into() + Self::BRACES[0])
    }

    pub(crate) async fn second(&mut self, (a, _): (u8, u8)) -> Answer {
        Ok(a)
    }

    fn third() -> Result<
        [u8; {
            const TWO: usize = 2;
            TWO
        }],
        Blocked,
    > {
        Ok([1; 2])
    }

    #[guarded("blocks of its own", max_concurrency = 0, fallback = 7)]
    fn fourth(&self) -> u8 {
        1
    }

    fn fifth(&self) -> impl Future<Output = Answer> {
        async { Ok(5) }
    }
}

#[guarded(qps = 1)]
impl Open for Shop<u8, 2> {
    type Door = u8;
    const DOORS: u8 = 2;

    fn open(&self, n: u8) -> Answer {
        Ok(n + Self::DOORS)
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

#[test]
fn every_method_of_a_block_is_a_resource_of_its_own_named_with_its_type() {
    let registry = Registry::builder().clock(ManualClock::new()).build();
    registry.scope(|| {
        let mut shop = Shop::<u8, 2>::new(3);
        assert_eq!((shop.first().unwrap(), now(shop.second((4, 0))).unwrap()), (4, 4));
        assert_eq!((Shop::<u8, 2>::third().unwrap(), now(shop.fifth()).unwrap()), ([1, 1], 5));
        assert_eq!((shop.open(1).unwrap(), shop.is_open()), (3, true));
        assert!(shop.first().is_err() && now(shop.second((4, 0))).is_err() && shop.open(1).is_err());
        assert!(Shop::<u8, 2>::third().is_err() && now(shop.fifth()).is_err());
        assert_eq!(shop.fourth(), 7);
    });
    let of_shop = |method: &str| format!("blocks::Shop<_, N>::{method}");
    let mut known: Vec<_> =
        registry.resources().map(|stats| (stats.resource().to_owned(), stats.totals().passed())).collect();
    known.sort();
    assert_eq!(
        known,
        [
            ("<blocks::Shop<u8, 2> as blocks::Open>::open".into(), 1),
            ("blocks of its own".into(), 0),
            (of_shop("fifth"), 1),
            (of_shop("first"), 1),
            (of_shop("second"), 1),
            (of_shop("third"), 1),
        ]
    );
}
