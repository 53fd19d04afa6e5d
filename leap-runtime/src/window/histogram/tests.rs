use std::iter;

use proptest::{collection::vec, prelude::*};

use super::*;

fn s(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn record(histogram: &Histogram, now: Timestamp, rt: Duration) {
    histogram.turn(now, iter::empty);
    histogram.counts().record(u64::try_from(rt.as_nanos()).unwrap());
}

#[test]
fn each_bucket_starts_where_the_one_before_ends() {
    let starts: Vec<_> = (0..=BUCKETS).map(start_of).collect();
    assert_eq!(starts[..10], [0, 128, 256, 384, 512, 640, 768, 896, 1_024, 1_152]);
    assert_eq!(starts[15..18], [1_920, 2_048, 2_304]);
    assert_eq!(starts[BUCKETS], 1 << 39);
    for bucket in 0..BUCKETS {
        let (first, last) = (starts[bucket], starts[bucket + 1] - 1);
        assert!(first < last);
        assert_eq!((bucket_of(first), bucket_of(last)), (bucket, bucket), "{first} to {last}");
    }
}

#[test]
fn the_longest_times_share_the_last_bucket() {
    for rt in [(1 << 39) - 1, 1 << 39, u64::MAX] {
        assert_eq!(bucket_of(rt), BUCKETS - 1);
    }
}

#[test]
fn what_is_shown_is_off_by_a_seventeenth_at_most() {
    for bucket in 0..BUCKETS {
        let shown = u64::try_from(shown(bucket).as_nanos()).unwrap();
        for rt in [start_of(bucket), start_of(bucket + 1) - 1] {
            let off = shown.abs_diff(rt);
            // The half nanosecond that the division rounds away weighs less than the last nanosecond of the
            // bucket.
            assert!(off <= 64 || off * 17 <= rt + 17, "{rt} is shown as {shown}");
        }
    }
}

#[test]
fn an_empty_histogram_has_no_percentiles() {
    let histogram = Histogram::new(s(0));
    assert_eq!(histogram.quantiles(s(0), [0.5, 0.99], iter::empty), None);
}

#[test]
fn a_time_above_any_old_cap_is_told() {
    // A10
    let histogram = Histogram::new(s(0));
    record(&histogram, s(1), Duration::from_millis(7_200));
    let [p0, p50, p100] = histogram.quantiles(s(1), [0.0, 0.5, 1.0], iter::empty).unwrap();
    assert_eq!((p0, p50), (p100, p100));
    assert!(p50.abs_diff(Duration::from_millis(7_200)) < Duration::from_millis(424), "{p50:?}");
}

#[test]
fn a_time_leaves_the_percentiles_with_its_fifteen_seconds() {
    let histogram = Histogram::new(s(5));
    record(&histogram, s(14), Duration::from_millis(1));
    record(&histogram, s(15), Duration::from_millis(100));
    let median = |now| histogram.quantiles(s(now), [0.5], iter::empty).map(|[median]| median.as_millis());
    assert_eq!(median(15), Some(1));
    assert_eq!(median(59), Some(1));
    assert_eq!(median(60), Some(96));
    assert_eq!(median(74), Some(96));
    assert_eq!(median(75), None);
    assert_eq!(median(14), Some(1)); // a late question counts at the newest bucket
}

#[test]
fn a_histogram_takes_less_than_six_kib() {
    let slots = 4 * size_of::<[AtomicU32; BUCKETS]>();
    assert!(size_of::<Histogram>() + slots <= 6 << 10, "{} + {slots}", size_of::<Histogram>());
}

proptest! {
    #[test]
    fn percentiles_agree_with_the_sorted_times(
        rts in vec(prop_oneof![0_u64..5_000, 0_u64..50_000_000, 0_u64..1 << 39], 1..300),
        q in 0.0_f64..=1.0,
    ) {
        let histogram = Histogram::new(s(0));
        for &rt in &rts {
            histogram.counts().record(rt);
        }
        let mut sorted = rts;
        sorted.sort_unstable();
        let [shown] = histogram.quantiles(s(0), [q], iter::empty).unwrap();
        let shown = u64::try_from(shown.as_nanos()).unwrap();
        let exact = sorted[usize::try_from(rank(q, sorted.len() as u64)).unwrap() - 1];
        let off = shown.abs_diff(exact);
        prop_assert!(off <= 64 || off * 17 <= exact + 17, "{} is shown as {}", exact, shown);
    }
}
