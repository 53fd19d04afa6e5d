//! Authority rules at work: an origin is looked up in every list, and all must agree.

use crate::rule::{AuthorityRule, RuleId};

/// The lists of a resource, in the order of its rules.
#[derive(Debug, Default)]
pub(crate) struct Authority {
    lists: Box<[List]>,
}

/// Sorted, so that a list of thousands costs a dozen comparisons.
#[derive(Debug)]
struct List {
    id: RuleId,
    allows: bool,
    origins: Box<[Box<str>]>,
}

impl Authority {
    pub(crate) fn new(rules: &[(RuleId, AuthorityRule)]) -> Self {
        let list = |(id, rule): &(RuleId, AuthorityRule)| {
            let mut origins: Vec<Box<str>> = rule.origins().map(Box::from).collect();
            origins.sort_unstable();
            List { id: id.clone(), allows: rule.is_allow_list(), origins: origins.into() }
        };
        Self { lists: rules.iter().map(list).collect() }
    }

    /// Lets a call of this origin through, or names the first rule that does not. Nobody is no origin in any list.
    #[inline]
    pub(crate) fn ask(&self, origin: Option<&str>) -> Result<(), &RuleId> {
        match origin {
            Some(origin) if !self.lists.is_empty() => self.look_up(origin),
            _ => Ok(()),
        }
    }

    fn look_up(&self, origin: &str) -> Result<(), &RuleId> {
        let admits = |list: &&List| {
            list.origins.binary_search_by(|listed| (**listed).cmp(origin)).is_ok() == list.allows
        };
        self.lists.iter().find(|list| !admits(list)).map_or(Ok(()), |list| Err(&list.id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::rule::RuleKind;

    fn authority(rules: Vec<AuthorityRule>) -> Authority {
        let id = |i| RuleId::new(None, RuleKind::Flow, i);
        Authority::new(&rules.into_iter().enumerate().map(|(i, rule)| (id(i), rule)).collect::<Vec<_>>())
    }

    #[test]
    fn origins_are_told_as_sentinel_tells_them() {
        let mut n_answers = 0;
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/conformance/authority.jsonl");
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let list = |name: &str| {
                let text = case["rule"][name].as_str()?;
                Some(text.split(',').map(str::to_owned).collect::<Vec<_>>())
            };
            let rule = match list("allow") {
                Some(allowed) => AuthorityRule::allow(allowed).unwrap(),
                None => AuthorityRule::deny(list("deny").unwrap()).unwrap(),
            };
            let authority = authority(vec![rule.clone()]);
            for call in case["origins"].as_array().unwrap() {
                let origin = Some(call[0].as_str().unwrap()).filter(|origin| !origin.is_empty());
                assert_eq!(authority.ask(origin).is_ok(), call[1] == "pass", "{call} in {line}");
                assert_eq!(rule.admits(origin), call[1] == "pass", "{call} in {line}");
                n_answers += 1;
            }
        }
        assert_eq!(n_answers, 32);
    }

    #[test]
    fn of_several_lists_all_must_agree_and_the_first_that_does_not_is_named() {
        let authority = authority(vec![
            AuthorityRule::allow(["b", "a", "c"]).unwrap(),
            AuthorityRule::deny(["b"]).unwrap(),
            AuthorityRule::deny(["b", "c"]).unwrap(),
        ]);
        let refusing = |origin| authority.ask(origin).err().map(RuleId::position);
        assert_eq!(refusing(Some("a")), None);
        assert_eq!(refusing(Some("b")), Some(1));
        assert_eq!(refusing(Some("c")), Some(2));
        assert_eq!(refusing(Some("d")), Some(0));
        assert_eq!(refusing(None), None);
    }
}
