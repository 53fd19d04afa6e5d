//! What rules in shadow say, and what rules keep when they change their mode: as one that was never touched.
#![expect(clippy::unwrap_used, reason = "a test may fail by it")]

mod common;
#[path = "common/twins.rs"]
mod twins;

use common::R;
use leap_runtime::{Mode, RuleSet};
use proptest::prelude::*;
use twins::{Said, Shadow, Site, all_rules, config, offers};

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn a_rule_alone_in_shadow_says_of_every_call_what_it_would_have_said(offers in offers(80)) {
        for rule in all_rules() {
            let (mut enforced, mut shadow) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Shadow));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                prop_assert_eq!(shadow.shadow_says(offer), Shadow::from(&said), "call {} by {}", i, rule);
            }
        }
    }

    #[test]
    fn a_rule_that_was_off_for_a_while_goes_on_as_one_that_was_not(offers in offers(80), at in 1..60_usize) {
        for rule in all_rules() {
            let (mut enforced, mut switched) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Enforce));
            for (i, offer) in offers.iter().enumerate() {
                if i == at {
                    switched.load(&rule, Mode::Off);
                    // Calls that run end meanwhile.
                    let pause = std::time::Duration::from_millis(90);
                    switched.wait(pause);
                    enforced.wait(pause);
                    switched.load(&rule, Mode::Enforce);
                }
                prop_assert_eq!(switched.offer(offer), enforced.offer(offer), "call {} by {}", i, rule);
            }
        }
    }

    #[test]
    fn a_rule_that_is_promoted_goes_on_from_what_it_said_in_shadow(offers in offers(80), at in 1..60_usize) {
        for rule in all_rules() {
            let (mut enforced, mut promoted) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Shadow));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                if i == at {
                    promoted.load(&rule, Mode::Enforce);
                }
                if i < at {
                    prop_assert_eq!(promoted.offer(offer), Said::Passes);
                } else {
                    prop_assert_eq!(promoted.offer(offer), said, "call {} by {}", i, rule);
                }
            }
        }
    }

    #[test]
    fn a_rule_that_is_demoted_says_in_shadow_what_it_would_have_gone_on_to_say(
        offers in offers(80),
        at in 1..60_usize,
    ) {
        for rule in all_rules() {
            let (mut enforced, mut demoted) = (Site::of(&rule, Mode::Enforce), Site::of(&rule, Mode::Enforce));
            for (i, offer) in offers.iter().enumerate() {
                let said = enforced.offer(offer);
                if i == at {
                    demoted.load(&rule, Mode::Shadow);
                }
                if i < at {
                    prop_assert_eq!(demoted.offer(offer), said);
                } else {
                    prop_assert_eq!(demoted.shadow_says(offer), Shadow::from(&said), "call {} by {}", i, rule);
                }
            }
        }
    }

    #[test]
    fn verdicts_are_the_same_with_any_rules_in_shadow_and_without(
        offers in offers(80),
        enforced in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        shadows in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let all = all_rules();
        let rules = || {
            let named = |set: RuleSet, (i, at): (usize, &prop::sample::Index)| {
                set.named(format!("rule-{i}"), R, at.get(&all).clone())
            };
            enforced.iter().enumerate().fold(RuleSet::new(), named)
        };
        let in_shadow = |set: RuleSet, (i, at): (usize, &prop::sample::Index)| {
            set.named(format!("shadow-{i}"), R, at.get(&all).clone().with_mode(Mode::Shadow))
        };
        let mut plain = Site::new(rules());
        let mut shadowed = Site::new(shadows.iter().enumerate().fold(rules(), in_shadow));
        for offer in &offers {
            prop_assert_eq!(shadowed.offer(offer), plain.offer(offer));
        }
        let traffic = |site: &Site| {
            let stats = site.registry().stats(R).unwrap();
            (*stats.totals(), stats.in_flight(), stats.waiting())
        };
        prop_assert_eq!(traffic(&shadowed), traffic(&plain));
    }
}
