//! How long a breaker stays open, where that grows.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::rule::{BreakerRule, RuleId};

/// How long a breaker stays open that has tripped `doublings` times more since it was last closed: doubled each time
/// up to the rule's longest, and then by `draw` between 0.9 and 1.1 times that, but not above the longest.
///
/// Where the time does not grow it is the rule's, and nothing is drawn. Exponential backoff, with a jitter so that those
/// who failed together do not come back together (after M. Brooker, *Exponential Backoff And Jitter*, 2015).
#[inline]
pub(super) fn open_time(rule: &BreakerRule, doublings: u32, draw: impl FnOnce() -> u64) -> Duration {
    let Some(longest) = rule.max_open() else { return rule.open_time() };
    let longest = nanos(longest);
    let time = nanos(rule.open_time()).saturating_mul(1 << doublings).min(longest);
    let (least, most) = (time - time / 10, longest.min(time + time / 10));
    let spread = u128::from(most - least + 1);
    // Under the spread, which is a u64's.
    let drawn = ((u128::from(draw()) * spread) >> 64) as u64;
    Duration::from_nanos(least + drawn)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).expect("a rule's times are at most a year")
}

/// Where the draws of one breaker begin: its rule's id (FNV-1a), and when it was made, which differs among processes.
pub(super) fn seed(id: &RuleId, made: Timestamp) -> u64 {
    let bytes = id.function().unwrap_or_default().bytes().chain(id.kind().name().bytes());
    let bytes = bytes.chain(id.position().to_le_bytes()).chain(made.as_nanos().to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The draw that goes with one transition (`SplitMix64`, after Steele, Lea and Flood).
pub(super) fn draw(seed: u64, sequence: u64) -> u64 {
    let z = seed.wrapping_add(sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RuleKind;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn growing(open_ms: u64, max_ms: u64) -> BreakerRule {
        let rule = BreakerRule::error_count(1).open_for(ms(open_ms)).unwrap();
        rule.with_max_open(ms(max_ms)).unwrap()
    }

    #[test]
    fn the_time_doubles_up_to_its_longest_within_a_tenth() {
        let rule = growing(1_000, 6_000);
        let bounds = |doublings| [0, u64::MAX].map(|draw| open_time(&rule, doublings, || draw));
        assert_eq!(bounds(0), [ms(900), ms(1_100)]);
        assert_eq!(bounds(1), [ms(1_800), ms(2_200)]);
        assert_eq!(bounds(2), [ms(3_600), ms(4_400)]);
        assert_eq!(bounds(3), [ms(5_400), ms(6_000)], "8 s would be too long");
        assert_eq!(bounds(63), [ms(5_400), ms(6_000)]);
    }

    #[test]
    fn a_time_that_does_not_grow_is_the_rules_own() {
        let rule = BreakerRule::error_count(1).open_for(ms(70)).unwrap();
        assert_eq!([0, u64::MAX].map(|draw| open_time(&rule, 9, || draw)), [ms(70); 2]);
    }

    #[test]
    fn draws_differ_by_rule_by_moment_and_by_transition_and_spread_evenly() {
        let id = |position| RuleId::new(Some("shop::create"), RuleKind::ErrorCount, position);
        let made = Timestamp::from_millis;
        let seeds = [seed(&id(0), made(0)), seed(&id(1), made(0)), seed(&id(0), made(1))];
        assert_eq!(seeds[0], seed(&id(0), made(0)));
        let draws: Vec<u64> = seeds.iter().map(|seed| draw(*seed, 1)).collect();
        assert!(draws[0] != draws[1] && draws[0] != draws[2] && draws[1] != draws[2]);

        let mut parts = [0; 10];
        for sequence in 0..10_000 {
            let time = open_time(&growing(1_000, 60_000), 0, || draw(seeds[0], sequence));
            parts[((time.as_micros() - 900_000) / 20_001) as usize] += 1;
        }
        assert!(parts.iter().all(|n| (900..1_100).contains(n)), "{parts:?}");
    }
}
