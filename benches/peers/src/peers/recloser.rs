//! recloser: a circuit breaker.

use std::sync::LazyLock;

use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};
use recloser::{Error, Recloser};

use crate::row::{Part, Row};

#[inline(never)]
fn guarded(breaker: &Recloser, x: u64) -> Result<u64, Error<AppError>> {
    breaker.call(|| work(x))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new("recloser", Part::Breaker, "its default: failure rate of the last 100 calls", |lane, n| {
            static BREAKERS: LazyLock<Lanes<Recloser>> =
                LazyLock::new(|| Lanes::new(|_| Recloser::default()));
            let breaker = BREAKERS.of(lane);
            repeat(n, |x| guarded(breaker, x).is_ok())
        })
        .lacking(super::BREAKER_LACKS),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Error, Recloser, guarded};

    #[test]
    fn failures_open_it() {
        let breaker = Recloser::default();
        let opens = (0..200).any(|_| matches!(guarded(&breaker, u64::MAX), Err(Error::Rejected)));
        assert!(opens);
    }
}
