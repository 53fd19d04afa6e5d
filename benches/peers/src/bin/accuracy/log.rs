//! The oracle: a sliding log as one would write it on paper.

use std::collections::VecDeque;
use std::time::Duration;

use leap_runtime::Timestamp;

/// What every limit here is for.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Lets a call pass unless `limit` passed within the last interval. One that passed a whole interval ago has left.
#[derive(Debug)]
pub(crate) struct SlidingLog {
    limit: usize,
    passed: VecDeque<Timestamp>,
}

impl SlidingLog {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, passed: VecDeque::with_capacity(limit) }
    }

    /// Of `n` calls that arrive at `now`, how many pass. Times do not decrease.
    pub(crate) fn admit(&mut self, now: Timestamp, n: u64) -> u64 {
        while self.passed.front().is_some_and(|first| now.since(*first) >= INTERVAL) {
            self.passed.pop_front();
        }
        let room = (self.limit - self.passed.len()) as u64;
        let admitted = n.min(room);
        self.passed.extend((0..admitted).map(|_| now));
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_full_until_its_oldest_is_an_interval_old() {
        let mut log = SlidingLog::new(3);
        let asked = [(0, 2), (400, 2), (999, 1), (1_000, 5), (1_399, 1), (1_400, 1)];
        let admitted = asked.map(|(ms, n)| log.admit(Timestamp::from_millis(ms), n));
        assert_eq!(admitted, [2, 1, 0, 2, 0, 1]);
    }

    #[test]
    fn an_idle_log_does_not_save_up() {
        let mut log = SlidingLog::new(3);
        assert_eq!(log.admit(Timestamp::from_millis(60_000), 9), 3);
        assert_eq!(log.admit(Timestamp::from_millis(60_999), 9), 0);
    }
}
