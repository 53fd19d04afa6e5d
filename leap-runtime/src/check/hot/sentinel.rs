//! Sentinel's own arithmetic for hot parameters, after its `ParamFlowChecker`: whole milliseconds, whole tokens.

use super::pace::{approximate, whole};

/// So many tokens per span for each value. Neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) tokens: u64,
    pub(super) burst: u64,
    pub(super) span_ms: u64,
    pub(super) max_wait_ms: u64,
}

/// A value's bucket: what is left of it, and when it was last refilled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) left: u64,
    pub(super) filled_ms: u64,
}

impl Rate {
    pub(super) fn capacity(&self) -> u64 {
        self.tokens.saturating_add(self.burst)
    }

    /// `passDefaultLocalCheck`: the bucket as a call of `n` at `now` leaves it, if it passes. No bucket is a full one.
    ///
    /// It is refilled only when more than a span has gone by since it last was.
    pub(super) fn take(&self, bucket: Option<Bucket>, now_ms: u64, n: u64) -> Option<Bucket> {
        let Some(bucket) = bucket else {
            let left = self.capacity().checked_sub(n)?;
            return Some(Bucket { left, filled_ms: now_ms });
        };
        let left = self.refilled(bucket, now_ms);
        let filled_ms = if left.is_some() { now_ms } else { bucket.filled_ms };
        Some(Bucket { left: left.unwrap_or(bucket.left).checked_sub(n)?, filled_ms })
    }

    /// What the bucket holds after a refill, if it is time for one.
    fn refilled(&self, bucket: Bucket, now_ms: u64) -> Option<u64> {
        let gone_ms = now_ms.saturating_sub(bucket.filled_ms);
        if gone_ms <= self.span_ms {
            return None;
        }
        let added = u128::from(gone_ms) * u128::from(self.tokens) / u128::from(self.span_ms);
        let held = added.saturating_add(bucket.left.into()).min(self.capacity().into());
        Some(u64::try_from(held).expect("at most the capacity"))
    }

    /// When `n` permits, at most the capacity, are in the bucket if nobody takes any.
    pub(super) fn full_at(&self, bucket: Bucket, n: u64) -> u64 {
        let missing = u128::from(n.saturating_sub(bucket.left)) * u128::from(self.span_ms);
        let fill_ms = u64::try_from(missing.div_ceil(self.tokens.into())).unwrap_or(u64::MAX);
        bucket.filled_ms.saturating_add(fill_ms.max(self.span_ms + 1))
    }

    /// Whether the bucket is as good as a new one.
    pub(super) fn is_full(&self, bucket: Bucket, now_ms: u64) -> bool {
        self.refilled(bucket, now_ms) == Some(self.capacity())
    }

    /// `passThrottleLocalCheck`: when a call of `n` that asks at `asked` may start, but not before `arrival`, `last` being
    /// when the one before it did. Its wait must be under the longest. An error if it would take too long, with the moment
    /// it would have started at.
    pub(super) fn turn(
        &self,
        last_ms: Option<u64>,
        arrival_ms: u64,
        asked_ms: u64,
        n: u64,
    ) -> Result<u64, u64> {
        let next = last_ms.map_or(0, |last_ms| last_ms.saturating_add(self.cost_ms(n)));
        let start = next.max(arrival_ms).max(asked_ms);
        if start == asked_ms || start - asked_ms < self.max_wait_ms { Ok(start) } else { Err(start) }
    }

    /// `Math.round(1000 · n · seconds / tokens)`.
    pub(super) fn cost_ms(&self, n: u64) -> u64 {
        let cost = approximate(n) * approximate(self.span_ms) / approximate(self.tokens);
        whole((cost + 0.5).floor())
    }
}
