//! What became of the requests, as their clients saw it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use axum::http::{HeaderMap, StatusCode};

/// What the shop can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Route {
    Products,
    Price,
    Orders,
}

impl Route {
    pub(crate) const ALL: [Self; 3] = [Self::Products, Self::Price, Self::Orders];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Products | Self::Price => "GET",
            Self::Orders => "POST",
        }
    }

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Products => "/products",
            Self::Price => "/price",
            Self::Orders => "/orders",
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// 200.
    Ok,
    /// 200, with a price that is only the last one known.
    LastKnown,
    /// 429: over a limit.
    TooManyRequests,
    /// 502: the supplier failed.
    BadGateway,
    /// 503: a breaker is open.
    Unavailable,
    /// The client went away before its answer.
    Gone,
    /// Anything else, and a block that does not say when to come back.
    Unexpected,
}

impl Answer {
    pub(crate) const ALL: [Self; 7] = [
        Self::Ok,
        Self::LastKnown,
        Self::TooManyRequests,
        Self::BadGateway,
        Self::Unavailable,
        Self::Gone,
        Self::Unexpected,
    ];

    /// The header of a price that is only the last one known.
    pub(crate) const LAST_KNOWN: &'static str = "x-last-known";

    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let says_when = headers.contains_key("retry-after");
        match status {
            StatusCode::OK if headers.contains_key(Self::LAST_KNOWN) => Self::LastKnown,
            StatusCode::OK => Self::Ok,
            StatusCode::TOO_MANY_REQUESTS if says_when => Self::TooManyRequests,
            StatusCode::BAD_GATEWAY => Self::BadGateway,
            StatusCode::SERVICE_UNAVAILABLE if says_when => Self::Unavailable,
            _ => Self::Unexpected,
        }
    }

    const fn heading(self) -> &'static str {
        match self {
            Self::Ok => "200",
            Self::LastKnown => "200 last known",
            Self::TooManyRequests => "429",
            Self::BadGateway => "502",
            Self::Unavailable => "503",
            Self::Gone => "went away",
            Self::Unexpected => "unexpected",
        }
    }
}

/// How many requests ended in which way.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<(Route, Answer), u64>>);

impl Tally {
    pub(crate) fn count(&self, route: Route, answer: Answer) {
        *self.0.lock().expect("nothing panics while counting").entry((route, answer)).or_default() += 1;
    }

    /// The requests of `route` that ended in one of these ways.
    pub(crate) fn sum(&self, route: Route, answers: &[Answer]) -> u64 {
        let counts = self.0.lock().expect("nothing panics while counting");
        answers.iter().filter_map(|&answer| counts.get(&(route, answer))).sum()
    }

    /// All requests that ended in this way.
    pub(crate) fn of(&self, answer: Answer) -> u64 {
        Route::ALL.iter().map(|&route| self.sum(route, &[answer])).sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:16}", "answers")?;
        for answer in Answer::ALL {
            write!(f, "  {:>6}", answer.heading())?;
        }
        for route in Route::ALL {
            write!(f, "\n{:4} {:11}", route.method(), route.path())?;
            for answer in Answer::ALL {
                write!(f, "  {:>width$}", self.sum(route, &[answer]), width = answer.heading().len().max(6))?;
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_status_and_a_block_must_say_when_to_come_back() {
        let plain = HeaderMap::new();
        let says_when = HeaderMap::from_iter([("retry-after".parse().unwrap(), "1".parse().unwrap())]);
        let last_known =
            HeaderMap::from_iter([(Answer::LAST_KNOWN.parse().unwrap(), "true".parse().unwrap())]);

        for (status, headers, answer) in [
            (200, &plain, Answer::Ok),
            (200, &last_known, Answer::LastKnown),
            (429, &says_when, Answer::TooManyRequests),
            (429, &plain, Answer::Unexpected),
            (502, &plain, Answer::BadGateway),
            (503, &says_when, Answer::Unavailable),
            (503, &plain, Answer::Unexpected),
            (500, &plain, Answer::Unexpected),
        ] {
            assert_eq!(Answer::of(status.try_into().unwrap(), headers), answer, "{status} {headers:?}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_route_and_a_column_for_each_answer() {
        let tally = Tally::default();
        tally.count(Route::Products, Answer::Ok);
        tally.count(Route::Orders, Answer::Gone);

        assert_eq!(
            tally.to_string(),
            "\
answers              200  200 last known     429     502     503  went away  unexpected
GET  /products         1               0       0       0       0          0           0
GET  /price            0               0       0       0       0          0           0
POST /orders           0               0       0       0       0          1           0
"
        );
        assert_eq!(tally.sum(Route::Products, &[Answer::Ok, Answer::Gone]), 1);
        assert_eq!(tally.of(Answer::Gone), 1);
    }
}
