//! Rules that watch another resource: calls here are refused while calls there have reached the limit.
//!
//! The other resource's windows count what passes there into a [`LeapArray`] that the rule shares with them, and the
//! rule asks it. Neither resource holds the other: what they share holds only counts, so two resources that watch each
//! other are freed like any.
//!
//! What passed there is counted before its caller goes on, so whoever comes after it sees it. Nothing is taken by
//! asking: calls here neither count nor hold back calls there.

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::blocked::{By, Refusal};
use crate::clock::Timestamp;
use crate::rule::{FlowRule, Precision, Relation, RuleId};
use crate::window::{Answer, LeapArray};

/// A window over what a resource lets through, held by those who have rules that ask it: while they do, it is kept up to
/// date. Plans hold its counts only, so that a call in flight by an old plan does not keep others counting.
#[derive(Debug)]
pub(crate) struct Watch {
    interval: Duration,
    n_buckets: u32,
    passes: Arc<LeapArray>,
}

impl Watch {
    fn new(rule: &FlowRule) -> Self {
        let (interval, n_buckets) = (rule.interval(), rule.n_buckets());
        // An exact rule does without buckets, so they need not divide its interval.
        let passes = (1..=n_buckets)
            .rev()
            .find_map(|n_buckets| LeapArray::new(n_buckets, interval).ok())
            .unwrap_or_else(|| {
                LeapArray::new(1, Duration::from_micros(1)).expect("a window can be as short as 1 µs")
            });
        Self { interval, n_buckets, passes: Arc::new(passes) }
    }

    fn serves(&self, rule: &FlowRule) -> bool {
        self.interval == rule.interval() && self.n_buckets == rule.n_buckets()
    }
}

/// On the side of the resource that is watched: its windows that rules ask.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Vec<Weak<Watch>>);

impl Watchers {
    /// The window of the rule's shape: one that is there, or a new one, in which nothing has passed yet; and whether it is.
    ///
    /// With a new one the resource's plan is to be made anew [with it](Self::windows) before the rule is asked.
    pub(crate) fn watch(&mut self, rule: &FlowRule) -> (Arc<Watch>, bool) {
        let found = self.0.iter().filter_map(Weak::upgrade).find(|watch| watch.serves(rule));
        if let Some(watch) = found {
            return (watch, false);
        }
        let watch = Arc::new(Watch::new(rule));
        self.0.push(Arc::downgrade(&watch));
        (watch, true)
    }

    /// Forgets the windows that no rule asks any more, and tells whether there were any.
    pub(crate) fn forget(&mut self) -> bool {
        let before = self.0.len();
        self.0.retain(|watch| watch.strong_count() > 0);
        self.0.len() < before
    }

    /// What is to be kept up to date.
    pub(crate) fn windows(&self) -> Box<[Arc<LeapArray>]> {
        self.0.iter().filter_map(Weak::upgrade).map(|watch| Arc::clone(&watch.passes)).collect()
    }
}

/// The windows over other resources that the rules of one resource ask, by the other's name.
///
/// They are found before the resource's plan is made and without its lock, because finding one locks the other resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches(Vec<(Box<str>, Arc<Watch>)>);

impl Watches {
    /// Finds the windows of all `rules` that watch a resource.
    pub(crate) fn of<'a>(
        rules: impl IntoIterator<Item = &'a FlowRule>,
        watch: impl Fn(&str, &FlowRule) -> Arc<Watch>,
    ) -> Self {
        let watch = |rule: &FlowRule| match rule.relation() {
            Relation::Associated(related) => Some((related.as_ref().into(), watch(related, rule))),
            _ => None,
        };
        Self(rules.into_iter().filter_map(watch).collect())
    }

    /// The resources that are watched.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    fn find(&self, related: &str, rule: &FlowRule) -> Option<Arc<LeapArray>> {
        let found = self.0.iter().find(|(name, watch)| **name == *related && watch.serves(rule));
        found.map(|(_, watch)| Arc::clone(&watch.passes))
    }
}

/// The rules of a resource that watch others.
#[derive(Debug, Default)]
pub(crate) struct Associated {
    rules: Box<[Asked]>,
}

#[derive(Debug)]
struct Asked {
    id: RuleId,
    rule: FlowRule,
    permits: u64,
    strict: bool,
    passes: Arc<LeapArray>,
}

impl Associated {
    /// Those of `rules` that watch another resource, by the windows in `watches`. Rules that are no limit are left out.
    ///
    /// Precision `exact` is as good as `strict` here: times of single permits are kept for the resource's own rules.
    pub(crate) fn new(rules: &[(RuleId, FlowRule)], watches: &[&Watches]) -> Self {
        let asked = |(id, rule): &(RuleId, FlowRule)| {
            let Relation::Associated(related) = rule.relation() else { return None };
            let permits = rule.permits()?;
            let passes = watches.iter().find_map(|watches| watches.find(related, rule));
            let passes = passes.expect("all windows are found before a plan is made");
            let strict = rule.precision() != Precision::Sentinel;
            Some(Asked { id: id.clone(), rule: rule.clone(), permits, strict, passes })
        };
        Self { rules: rules.iter().filter_map(asked).collect() }
    }

    /// Would the resources that are watched leave room for `n` permits?
    #[inline]
    pub(crate) fn ask(&self, n: u64, now: Timestamp) -> Result<(), Refusal<'_>> {
        if self.rules.is_empty() { Ok(()) } else { self.ask_all(n, now) }
    }

    fn ask_all(&self, n: u64, now: Timestamp) -> Result<(), Refusal<'_>> {
        let mut first = None;
        let mut latest = Some(now);
        for asked in &self.rules {
            let answer = asked.passes.ask(now, n, asked.permits, asked.strict);
            if answer != Answer::Fits {
                first.get_or_insert((asked, answer != Answer::Never));
                latest = latest.zip(answer.until()).map(|(latest, until)| latest.max(until));
            }
        }
        match first {
            None => Ok(()),
            Some((Asked { id, rule, .. }, fits)) => {
                let limit = rule.limit();
                Err(Refusal { rule: id, by: By::Associated { rule, limit, fits }, until: latest })
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests {
    use super::super::windows::Windows;
    use super::*;
    use crate::rule::{Behavior, RuleKind};
    use crate::sync::AtomicU64;

    const fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn watching(limit: f64, precision: Precision, n_buckets: u32) -> FlowRule {
        let rule = FlowRule::new(limit, Behavior::Reject).unwrap();
        let rule = rule.with_precision(precision).unwrap().with_buckets(n_buckets).unwrap();
        rule.associated("related").unwrap()
    }

    /// The resource that is watched, as far as it matters.
    #[derive(Default)]
    struct Related {
        watchers: Watchers,
        windows: Windows,
        passed: AtomicU64,
    }

    impl Related {
        fn watch(&mut self, rule: &FlowRule) -> Arc<Watch> {
            let (watch, _) = self.watchers.watch(rule);
            self.windows = Windows::default().watched_by(self.watchers.windows());
            watch
        }

        fn pass(&self, ms: u64, n: u64) {
            self.windows.admit(&self.passed, at(ms), n, &|| at(ms)).unwrap();
        }
    }

    fn associated(related: &mut Related, rules: &[FlowRule]) -> (Associated, Watches) {
        let id = |i| RuleId::new(None, RuleKind::Flow, i);
        let rules: Vec<_> = rules.iter().enumerate().map(|(i, rule)| (id(i), rule.clone())).collect();
        let related = std::cell::RefCell::new(related);
        let watches =
            Watches::of(rules.iter().map(|(_, rule)| rule), |_, rule| related.borrow_mut().watch(rule));
        (Associated::new(&rules, &[&watches]), watches)
    }

    #[test]
    fn a_call_is_refused_while_the_other_resource_has_reached_the_limit_and_takes_nothing_itself() {
        let mut related = Related::default();
        let rule = watching(5.0, Precision::Strict, 100);
        let (associated, _watches) = associated(&mut related, &[rule]);
        related.pass(100, 4);
        for _ in 0..10 {
            assert!(associated.ask(1, at(100)).is_ok());
        }
        assert!(associated.ask(2, at(100)).is_err());
        related.pass(200, 1);
        let refused = associated.ask(1, at(300)).unwrap_err();
        assert!(matches!(refused.by, By::Associated { fits: true, .. }));
        // Strict: those of 100 ms have left one bucket after their interval.
        assert_eq!(refused.until, Some(at(1_110)));
        assert!(associated.ask(1, at(1_109)).is_err());
        assert!(associated.ask(1, at(1_110)).is_ok());
        assert_eq!(associated.ask(6, at(9_000)).unwrap_err().until, None);
    }

    #[test]
    fn what_is_charged_to_the_other_resource_counts() {
        let mut related = Related::default();
        let (associated, _watches) = associated(&mut related, &[watching(5.0, Precision::Exact, 100)]);
        assert_eq!(related.windows.charge(&related.passed, 7, &|| at(0)), 7);
        assert!(associated.ask(1, at(0)).is_err());
    }

    #[test]
    fn of_several_rules_the_first_is_named_with_the_latest_time() {
        let mut related = Related::default();
        let rules = [watching(2.0, Precision::Strict, 100), watching(1.0, Precision::Strict, 10)];
        let (associated, _watches) = associated(&mut related, &rules);
        related.pass(0, 2);
        let refused = associated.ask(1, at(0)).unwrap_err();
        assert_eq!((refused.rule.position(), refused.until), (0, Some(at(1_100))));
    }

    #[test]
    fn a_window_is_shared_by_rules_of_its_shape_and_forgotten_with_the_last_of_them() {
        let mut related = Related::default();
        let (asks, ten) = associated(&mut related, &[watching(10.0, Precision::Strict, 100)]);
        related.pass(0, 10);
        // Another rule, or the same one changed, sees what passed before.
        let (asks_too, five) = associated(&mut related, &[watching(5.0, Precision::Exact, 100)]);
        assert_eq!(related.watchers.windows().len(), 1);
        assert!(asks_too.ask(1, at(10)).is_err());
        drop(ten);
        assert!(!related.watchers.forget());
        drop(five);
        assert!(related.watchers.forget(), "calls in flight by the old plan keep nobody counting");
        assert_eq!(related.watchers.windows().len(), 0);
        assert!(asks.ask(1, at(10)).is_err());
    }

    #[test]
    fn an_exact_rule_whose_buckets_do_not_divide_its_interval_is_watched_in_fewer() {
        for interval in [Duration::from_micros(7), Duration::from_nanos(500)] {
            let rule = FlowRule::new(5.0, Behavior::Reject).unwrap().per(interval).unwrap();
            let watch = Watch::new(&rule);
            assert_eq!(watch.passes.interval(), interval.max(Duration::from_micros(1)));
        }
    }

    #[test]
    fn related_calls_are_told_as_sentinel_tells_them() {
        let mut n_answers = 0;
        for case in super::super::scoped::tests::cases("related-") {
            let limit = case["rule"]["qps"].as_f64().unwrap();
            let mut related = Related::default();
            let (associated, _watches) = associated(&mut related, &[watching(limit, Precision::Sentinel, 2)]);
            for event in case["events"].as_array().unwrap() {
                let ms = 60_000 + event[0].as_u64().unwrap();
                let passes = match event[1].as_str().unwrap() {
                    "related" => {
                        related.pass(ms, 1);
                        true
                    }
                    _ => associated.ask(1, at(ms)).is_ok(),
                };
                assert_eq!(passes, event[2] == "pass", "{event} in {}", case["case"]);
                n_answers += 1;
            }
        }
        assert!(n_answers > 500, "{n_answers}");
    }
}
