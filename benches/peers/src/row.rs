//! A row of the table: what is called, and what that leaves out.

use leap_benches::measure;

/// What rows stand together, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Yardstick,
    Guarded,
    Limited,
    Blocked,
    Limiter,
    Breaker,
    Watched,
}

impl Part {
    pub(crate) const ALL: [Self; 7] = [
        Self::Yardstick,
        Self::Guarded,
        Self::Limited,
        Self::Blocked,
        Self::Limiter,
        Self::Breaker,
        Self::Watched,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Yardstick => "Yardsticks",
            Self::Guarded => "A limit, a breaker and numbers of what happened",
            Self::Limited => "A limit and numbers",
            Self::Blocked => "A limit or a breaker says no",
            Self::Limiter => "A limit alone",
            Self::Breaker => "A breaker alone",
            Self::Watched => "Numbers or a span alone",
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) part: Part,
    /// The work of a call, in a line.
    pub(crate) does: &'static str,
    /// What a guarded call does and this does not.
    pub(crate) lacks: &'static str,
    /// Whether it is measured again while sentinel-core reads its ticker's time.
    pub(crate) with_ticker: bool,
    calls: fn(lane: usize, n: u64) -> u64,
    tidy: fn(),
}

impl Row {
    pub(crate) const fn new(
        name: &'static str,
        part: Part,
        does: &'static str,
        calls: fn(usize, u64) -> u64,
    ) -> Self {
        Self { name, part, does, lacks: "", with_ticker: false, calls, tidy: || () }
    }

    pub(crate) const fn lacking(self, lacks: &'static str) -> Self {
        Self { lacks, ..self }
    }

    pub(crate) const fn also_with_ticker(self) -> Self {
        Self { with_ticker: true, ..self }
    }

    pub(crate) const fn tidied_by(self, tidy: fn()) -> Self {
        Self { tidy, ..self }
    }
}

impl measure::Row for Row {
    fn calls(&self, lane: usize, n: u64) -> u64 {
        (self.calls)(lane, n)
    }

    fn tidy(&self) {
        (self.tidy)();
    }
}
