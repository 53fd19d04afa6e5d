//! What is remembered about totals that only grow. Knows nothing of resources or rules.
//!
//! Counters are never reset: what happened in a window is the difference of two values of one total.
//! Three structures remember the past of the totals.
//!
//! | structure | remembers | serves |
//! | --- | --- | --- |
//! | `PassLog` | when each of the last permits passed | limits that hold over every span |
//! | `Ring`, [`LeapArray`] | the total when each bucket opened | limits that hold by buckets |
//! | `Snapshots`, `Histogram` | many totals when each bucket opened | statistics, breakers |

mod histogram;
mod hot_leap_array;
mod leap_array;
mod pass_log;
mod statistics;

pub(crate) use histogram::{Histogram, ResponseTimes};
pub use hot_leap_array::HotLeapArray;
pub(crate) use leap_array::Ring;
pub use leap_array::{Bucket, LeapArray};
pub(crate) use pass_log::{Age, PassLog};
pub(crate) use statistics::Snapshots;

use std::{error::Error, fmt, time::Duration};

use crate::clock::Timestamp;

/// May permits pass now, by one window?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// They fit behind the total that was asked about: a compare-exchange from that very value admits them.
    Fits,
    /// They do not fit. If nothing passes meanwhile, they will from `until` on.
    Full { until: Timestamp },
    /// The total that was asked about is out of date, or the window was not written up to it and now is:
    /// load the total anew and ask again.
    Stale,
    /// They are more than the limit and fit at no time.
    Never,
}

impl Answer {
    /// From when on the permits would fit, if they ever do and not now.
    #[inline]
    pub(crate) fn until(self) -> Option<Timestamp> {
        match self {
            Self::Full { until } => Some(until),
            Self::Fits | Self::Stale | Self::Never => None,
        }
    }
}

/// Why a window cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowError {
    /// A window has 1 to 2²⁰ buckets.
    Buckets {
        /// The number that was asked for.
        n_buckets: u32,
    },
    /// The interval cannot be divided into that many buckets of whole nanoseconds.
    Uneven {
        /// The interval that was asked for.
        interval: Duration,
        /// The number of buckets that was asked for.
        n_buckets: u32,
    },
    /// The buckets would be shorter than 1 µs.
    Short {
        /// The interval that was asked for.
        interval: Duration,
        /// The number of buckets that was asked for.
        n_buckets: u32,
    },
    /// The interval is longer than a [`Timestamp`] can tell, 584 years.
    Long {
        /// The interval that was asked for.
        interval: Duration,
    },
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buckets { n_buckets } => {
                write!(f, "a window cannot have {n_buckets} buckets, only 1 to {}", Ring::MAX_BUCKETS)
            }
            Self::Uneven { interval, n_buckets } => {
                write!(f, "an interval of {interval:?} does not divide into {n_buckets} equal buckets")
            }
            Self::Short { interval, n_buckets } => {
                write!(
                    f,
                    "an interval of {interval:?} in {n_buckets} buckets would make them shorter than 1µs"
                )
            }
            Self::Long { interval } => {
                write!(f, "an interval of {interval:?} is longer than time can be told")
            }
        }
    }
}

impl Error for WindowError {}
