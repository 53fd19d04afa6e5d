//! What many threads on one resource would do to each other: a model, not a measurement.
//!
//! A core that wants a line which another one has written has it sent over; that takes a *transfer*, some 50 ns within a
//! socket and 100 ns between two. The model is the asymptotic bound of a closed queueing network (P. J. Denning,
//! J. P. Buzen, "The Operational Analysis of Queueing Network Models", 1978): threads do nothing but call, each line serves
//! one core at a time. With `k` threads on a line, the last to have it was another one `(k - 1) / k` of the time, so a
//! call waits for it `fetches * transfer * (k - 1) / k`. A call takes at least what one thread takes plus all its waits;
//! and at least `k` times the wait for any one line, because all `k` are served one after another.
//!
//! What it leaves out makes things worse (a compare-exchange that fails is tried again; a socket's links are shared) or
//! better (a core may make several calls while it has the line; callers do other work between calls).

/// A cache line, or lines of one kind, that the calls of one resource share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) what: &'static str,
    /// How often a call needs it after others may have had it: accesses that follow at once on one another are one.
    pub(crate) fetches: f64,
    /// How many such lines the threads are spread over: 1 where all write to the same.
    pub(crate) stripes: f64,
    /// Whether each call takes the next one of many lines: nobody queues for it, and hardly ever is it one's own.
    pub(crate) goes_round: bool,
}

const fn line(what: &'static str, fetches: f64) -> Line {
    Line { what, fetches, stripes: 1.0, goes_round: false }
}

/// What a call counts where nobody decides on it, and its end, once many calls of a resource meet: in a lane of its thread,
/// of which there are 16 at most.
const LANE: Line = Line {
    stripes: 16.0,
    ..line(
        "node, lane of the thread: outcome, response time and its bucket, `passed` where nobody decides",
        3.0,
    )
};
/// Where the windows decide: a load and a compare-exchange.
const DECIDED: Line = line("node, entry: `passed` loaded, then by compare-exchange", 2.0);
/// Permits in a row are on different lines, so nobody queues for one; but it was another thread that wrote it last.
const LOG: Line = Line {
    goes_round: true,
    ..line("pass log: the leaving permit's time, read, and the permit's own, written", 1.0)
};
const BREAKER: Line = line("breaker: calls and bad calls by `fetch_add` at the end", 1.0);
const ISOLATION: Line = line("isolation: permits taken by compare-exchange, and given back", 3.0);
const SHARD: Line = line("hot values: the shard's lock, read twice to ask and twice to take", 4.0);
const GATE: Line = line("hot values: the key's own total, asked, then by compare-exchange", 2.0);
const TOP: Line = Line { stripes: 8.0, ..line("hot values: the list of the most frequent, by thread", 2.0) };

/// What the calls of each series of [`THREADS`](crate::series::THREADS) write, in that order. Whatever is written once in a
/// bucket of time and read otherwise (rings, snapshots, plans, the breaker's word) is in every core's cache and no part
/// of it, nor is what threads keep for themselves (the guard of a plan).
pub(crate) const PATHS: [&[Line]; 7] = [
    &[LANE],
    &[DECIDED, LOG, LANE],
    &[DECIDED, LANE],
    &[DECIDED, LOG, LANE, BREAKER],
    &[DECIDED, LANE, BREAKER],
    &[LANE, ISOLATION],
    &[LANE, SHARD, GATE, TOP],
];

/// What the model says of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Predicted {
    /// Of one thread's call, at least.
    pub(crate) ns: f64,
    /// The line that all wait for, if one alone is the bound.
    pub(crate) bottleneck: Option<&'static str>,
}

impl Predicted {
    /// Calls per microsecond, of all threads together.
    pub(crate) fn calls_per_us(&self, threads: u32) -> f64 {
        f64::from(threads) * 1e3 / self.ns
    }
}

/// How long a call takes at least whose lines these are, if it takes `alone_ns` with a thread by itself.
pub(crate) fn predict(alone_ns: f64, lines: &[Line], threads: u32, transfer_ns: f64) -> Predicted {
    let waits = lines.iter().map(|line| {
        let sharing = (f64::from(threads) / line.stripes).max(1.0);
        let wait = line.fetches * transfer_ns * (sharing - 1.0) / sharing;
        (line.what, wait, if line.goes_round { wait } else { sharing * wait })
    });
    let latency = waits.clone().fold(alone_ns, |sum, (_, wait, _)| sum + wait);
    let slowest = waits.max_by(|(.., a), (.., b)| a.total_cmp(b));
    match slowest {
        Some((what, _, cycle)) if cycle > latency => Predicted { ns: cycle, bottleneck: Some(what) },
        _ => Predicted { ns: latency, bottleneck: None },
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Predicted, predict};

    const LINES: [Line; 2] = [
        Line { what: "one", fetches: 1.0, stripes: 1.0, goes_round: false },
        Line { what: "striped", fetches: 2.0, stripes: 8.0, goes_round: false },
    ];

    #[test]
    fn a_thread_alone_waits_for_nobody() {
        assert_eq!(predict(30.0, &LINES, 1, 100.0), Predicted { ns: 30.0, bottleneck: None });
    }

    #[test]
    fn few_threads_wait_for_the_lines_that_they_share() {
        // Half of the time the other one had the first line; of the second each has its own.
        assert_eq!(predict(30.0, &LINES, 2, 100.0), Predicted { ns: 100.0, bottleneck: Some("one") });
        assert_eq!(predict(90.0, &LINES, 2, 100.0), Predicted { ns: 140.0, bottleneck: None });
    }

    #[test]
    fn many_threads_wait_for_one_another_at_one_line() {
        let predicted = predict(30.0, &LINES, 64, 100.0);
        assert_eq!(predicted, Predicted { ns: 6_300.0, bottleneck: Some("one") });
        assert!((predicted.calls_per_us(63) - 10.0).abs() < 1e-9);
    }

    #[test]
    fn nobody_queues_for_lines_that_go_round() {
        let round = [Line { goes_round: true, ..LINES[0] }];
        assert_eq!(predict(30.0, &round, 64, 64.0), Predicted { ns: 93.0, bottleneck: None });
    }

    #[test]
    fn a_striped_line_is_as_many_lines() {
        let of = |stripes| predict(0.0, &[Line { stripes, ..LINES[0] }], 64, 100.0);
        let waiting = |ns| Predicted { ns, bottleneck: Some("one") };
        let free = Predicted { ns: 0.0, bottleneck: None };
        assert_eq!([of(1.0), of(8.0), of(64.0)], [waiting(6_300.0), waiting(700.0), free]);
    }
}
