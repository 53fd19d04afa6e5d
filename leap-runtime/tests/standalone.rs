//! The limiter and the sliding window, without a registry.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{at, ms, qps};
use leap_runtime::{LeapArray, Limiter, ManualClock, Mode, Precision, SystemClock};

#[test]
fn a_limiter_holds_its_rule_in_every_precision() {
    for (precision, last_refused, first_taken) in [
        (Precision::Exact, 1_099, 1_100),
        (Precision::Strict, 1_199, 1_200),
        (Precision::Sentinel, 1_099, 1_100),
    ] {
        let clock = ManualClock::at(at(100));
        let rule = qps(10.0).with_buckets(10).unwrap().with_precision(precision).unwrap();
        let limiter = Limiter::with_clock(rule, clock.clone());
        assert!(limiter.try_acquire(4).is_ok());
        assert!(limiter.try_acquire(7).is_err());
        assert!(limiter.try_acquire(6).is_ok());
        clock.set(at(last_refused));
        let refused = limiter.try_acquire(1).unwrap_err();
        assert_eq!(refused.retry_after(), Some(ms(1)), "{precision:?}");
        assert_eq!(refused.to_string(), "the limit of 10 per 1s is reached; retry after 1ms");
        clock.set(at(first_taken));
        assert!(limiter.try_acquire(10).is_ok());
        assert_eq!(limiter.acquired(), 20);
    }
}

#[test]
fn a_limiter_says_when_permits_can_never_fit_and_takes_none_as_one() {
    let limiter = Limiter::with_clock(qps(2.0), ManualClock::new());
    let refused = limiter.try_acquire(3).unwrap_err();
    assert_eq!(refused.retry_after(), None);
    assert_eq!(refused.to_string(), "so many permits at once never fit the limit of 2 per 1s");
    assert!(limiter.try_acquire(0).is_ok());
    assert_eq!(limiter.acquired(), 1);
}

#[test]
fn a_limiter_has_no_switch() {
    let limiter = Limiter::with_clock(qps(0.0).with_mode(Mode::Off), ManualClock::new());
    assert!(limiter.try_acquire(1).is_err());
}

#[test]
fn a_limit_beyond_counting_limits_nothing() {
    let limiter = Limiter::with_clock(qps(1e300), ManualClock::new());
    assert!((0..10).all(|_| limiter.try_acquire(u32::MAX).is_ok()));
    assert_eq!(limiter.acquired(), 10 * u64::from(u32::MAX));
}

#[test]
fn a_limiter_is_shared_by_threads() {
    let limiter: Arc<Limiter<SystemClock>> =
        Arc::new(Limiter::new(qps(500.0).per(Duration::from_secs(3_600)).unwrap()));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            std::thread::spawn(move || (0..400).filter(|_| limiter.try_acquire(1).is_ok()).count())
        })
        .collect();
    assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>(), 500);
}

#[test]
fn a_window_sums_what_was_added_in_its_buckets() {
    let window = LeapArray::new(2, ms(1_000)).unwrap();
    for (moment, n) in [(100, 1), (499, 2), (500, 4), (999, 8), (1_000, 16)] {
        window.add(at(moment), n);
    }
    assert_eq!(
        (window.sum(at(1_000)), window.sum(at(1_499)), window.sum(at(1_500)), window.sum(at(2_000))),
        (28, 28, 16, 0)
    );
    assert_eq!(
        (window.total(), window.n_buckets(), window.bucket(), window.interval()),
        (31, 2, ms(500), ms(1_000))
    );
}

#[test]
fn a_window_shows_its_buckets_as_sentinel_does() {
    let window = LeapArray::new(4, ms(1_000)).unwrap();
    for (moment, n) in [(0, 1), (260, 2), (800, 3), (1_000, 4)] {
        window.add(at(moment), n);
    }
    let buckets: Vec<_> =
        window.values(at(1_100)).iter().map(|bucket| (bucket.start(), bucket.count())).collect();
    assert_eq!(buckets, [(at(250), 2), (at(500), 0), (at(750), 3), (at(1_000), 4)]);
    let current = window.current(at(1_100));
    assert_eq!((current.start(), current.count()), (at(1_000), 4));
    let previous = window.previous(at(1_100));
    assert_eq!((previous.start(), previous.count()), (at(750), 3));
    let previous = window.previous(at(1_800));
    assert_eq!((previous.start(), previous.count()), (at(1_500), 0));
}

#[test]
fn a_window_younger_than_its_interval_has_the_buckets_there_were() {
    let window = LeapArray::new(4, ms(1_000)).unwrap();
    window.add(at(300), 7);
    let buckets: Vec<_> =
        window.values(at(300)).iter().map(|bucket| (bucket.start(), bucket.count())).collect();
    assert_eq!(buckets, [(at(0), 0), (at(250), 7)]);
    assert_eq!(LeapArray::new(4, ms(1_000)).unwrap().previous(at(0)).count(), 0);
}

#[test]
fn a_late_add_counts_in_the_newest_bucket() {
    let window = LeapArray::new(2, ms(1_000)).unwrap();
    window.add(at(2_000), 1);
    window.add(at(1_999), 1);
    assert_eq!((window.current(at(2_000)).count(), window.sum(at(1_000))), (2, 2));
}

#[test]
fn an_interval_that_does_not_divide_is_refused_with_both_numbers() {
    let error = |n_buckets, interval| LeapArray::new(n_buckets, interval).unwrap_err().to_string();
    assert_eq!(error(7, ms(1_000)), "an interval of 1s does not divide into 7 equal buckets");
    assert_eq!(error(0, ms(1_000)), "a window cannot have 0 buckets, only 1 to 1048576");
    assert_eq!(error(2_000, ms(1)), "an interval of 1ms in 2000 buckets would make them shorter than 1µs");
    assert_eq!(
        error(1, Duration::MAX),
        format!("an interval of {:?} is longer than time can be told", Duration::MAX)
    );
}
