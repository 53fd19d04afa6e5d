//! failsafe: a circuit breaker.

use std::sync::LazyLock;

use failsafe::backoff::EqualJittered;
use failsafe::failure_policy::{ConsecutiveFailures, OrElse, SuccessRateOverTimeWindow};
use failsafe::{CircuitBreaker as _, Config, Error, StateMachine};
use leap_benches::lanes::Lanes;
use leap_benches::work::{AppError, repeat, work};

use crate::row::{Part, Row};

/// What `Config::new` makes.
pub(crate) type Breaker =
    StateMachine<OrElse<SuccessRateOverTimeWindow<EqualJittered>, ConsecutiveFailures<EqualJittered>>, ()>;

pub(crate) fn breaker() -> Breaker {
    Config::new().build()
}

#[inline(never)]
fn guarded(breaker: &Breaker, x: u64) -> Result<u64, Error<AppError>> {
    breaker.call(|| work(x))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        Row::new(
            "failsafe",
            Part::Breaker,
            "its default: success rate or consecutive failures, in a lock",
            |lane, n| {
                static BREAKERS: LazyLock<Lanes<Breaker>> = LazyLock::new(|| Lanes::new(|_| breaker()));
                let breaker = BREAKERS.of(lane);
                repeat(n, |x| guarded(breaker, x).is_ok())
            },
        )
        .lacking(super::BREAKER_LACKS),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Error, breaker, guarded};

    #[test]
    fn failures_open_it() {
        let breaker = breaker();
        let opens = (0..20).any(|_| matches!(guarded(&breaker, u64::MAX), Err(Error::Rejected)));
        assert!(opens);
    }
}
