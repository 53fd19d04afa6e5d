//! Whether what the clients saw is what the registry counted.

use std::fmt;

use leap_runtime::{BreakerState, Registry};

use crate::tally::{Answer, Route, Tally};

/// How the answers of a route split into calls that a resource let through and calls that it turned away.
struct Split {
    resource: &'static str,
    route: Route,
    passed: &'static [Answer],
    blocked: &'static [Answer],
}

const SPLITS: [Split; 4] = [
    Split {
        resource: "products.list",
        route: Route::Products,
        passed: &[Answer::Ok, Answer::Gone],
        blocked: &[Answer::TooManyRequests],
    },
    Split {
        resource: "prices.quote",
        route: Route::Price,
        passed: &[Answer::Ok, Answer::BadGateway, Answer::Gone],
        blocked: &[Answer::LastKnown, Answer::Unavailable],
    },
    // An order that nobody could charge had been let through itself.
    Split {
        resource: "orders.create",
        route: Route::Orders,
        passed: &[Answer::Ok, Answer::BadGateway, Answer::Unavailable, Answer::Gone],
        blocked: &[Answer::TooManyRequests],
    },
    Split {
        resource: "payments.charge",
        route: Route::Orders,
        passed: &[Answer::Ok, Answer::BadGateway, Answer::Gone],
        blocked: &[Answer::Unavailable],
    },
];

/// What both sides say about a resource.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Account {
    resource: &'static str,
    clients: Counts,
    registry: Counts,
    in_flight: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    blocked: u64,
}

impl Account {
    /// An account for each resource. Nothing may be under way any more.
    pub(crate) fn all(tally: &Tally, registry: &Registry) -> Vec<Self> {
        let account = |&Split { resource, route, passed, blocked }| {
            let clients = Counts { passed: tally.sum(route, passed), blocked: tally.sum(route, blocked) };
            // A resource that nobody called is not known yet.
            let (registry, in_flight) = registry.stats(resource).map_or_else(Default::default, |stats| {
                (
                    Counts { passed: stats.totals().passed(), blocked: stats.totals().blocked() },
                    stats.in_flight(),
                )
            });
            Self { resource, clients, registry, in_flight }
        };
        SPLITS.iter().map(account).collect()
    }

    /// What should be equal and is not, in a line each.
    pub(crate) fn differences(&self) -> Vec<String> {
        let Self { resource, clients, registry, in_flight } = self;
        let mut lines = Vec::new();
        for (what, clients, registry) in
            [("passed", clients.passed, registry.passed), ("blocked", clients.blocked, registry.blocked)]
        {
            if clients != registry {
                lines.push(format!(
                    "{resource}: clients saw {clients} calls {what}, the registry counted {registry}"
                ));
            }
        }
        if *in_flight > 0 {
            lines
                .push(format!("{resource}: {in_flight} calls are in flight though nobody is there any more"));
        }
        lines
    }
}

/// The accounts as a table.
pub(crate) struct Table<'a>(pub(crate) &'a [Account]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:16}  {:>18}  {:>18}", "", "passed", "blocked")?;
        writeln!(
            f,
            "{:16}  {:>8}  {:>8}  {:>8}  {:>8}  {:>9}",
            "resource", "clients", "registry", "clients", "registry", "in flight"
        )?;
        for Account { resource, clients, registry, in_flight } in self.0 {
            writeln!(
                f,
                "{resource:16}  {:>8}  {:>8}  {:>8}  {:>8}  {in_flight:>9}",
                clients.passed, registry.passed, clients.blocked, registry.blocked
            )?;
        }
        Ok(())
    }
}

/// Whether a breaker has opened, has let a probe through, and has closed again, in this order.
pub(crate) fn has_recovered(changes: impl IntoIterator<Item = (BreakerState, BreakerState)>) -> bool {
    use BreakerState::{Closed, HalfOpen, Open};
    let mut left = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)].into_iter().peekable();
    for change in changes {
        left.next_if_eq(&change);
    }
    left.peek().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_with_both_figures() {
        let equal = Account {
            resource: "orders.create",
            clients: Counts { passed: 7, blocked: 2 },
            registry: Counts { passed: 7, blocked: 2 },
            in_flight: 0,
        };
        let unequal = Account { registry: Counts { passed: 8, blocked: 1 }, in_flight: 1, ..equal };

        assert_eq!(equal.differences(), [""; 0]);
        assert_eq!(
            unequal.differences(),
            [
                "orders.create: clients saw 7 calls passed, the registry counted 8",
                "orders.create: clients saw 2 calls blocked, the registry counted 1",
                "orders.create: 1 calls are in flight though nobody is there any more",
            ]
        );
    }

    #[test]
    fn a_breaker_has_recovered_when_it_went_all_the_way_round_even_if_a_probe_failed_before() {
        use BreakerState::{Closed, HalfOpen, Open};
        let all_the_way =
            [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open), (Open, HalfOpen), (HalfOpen, Closed)];

        assert!(has_recovered(all_the_way));
        assert!(!has_recovered(all_the_way[..4].iter().copied()));
        assert!(!has_recovered(all_the_way[1..].iter().copied()));
        assert!(!has_recovered([]));
    }
}
