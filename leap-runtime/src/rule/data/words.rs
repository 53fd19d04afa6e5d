//! The words of a rule: one table, by which rules are read, written and described.
//!
//! Defaults and bounds are the types' own; that they are is tested.

use std::fmt;
use std::time::Duration;

use crate::rule::flow::{self, YEAR};
use crate::rule::{Mode, NAME_MAX, Precision, RuleKind, breaker, hot};

/// A word that a rule may be given.
#[derive(Debug)]
pub(super) struct Word {
    /// A time has two: `max_wait_ms`, and `max_wait` for text.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page of all fields, which a test writes"))]
    pub(super) default: Default,
    /// What it says, in half a line.
    #[cfg_attr(not(test), expect(dead_code, reason = "the same"))]
    pub(super) means: &'static str,
}

/// What stands behind a word, and between which bounds.
#[derive(Debug)]
pub(super) enum Takes {
    /// A number of permits, none between 0 and 1; any from 0 where calls wait, if they may.
    Permits {
        may_wait: bool,
    },
    Number {
        least: f64,
        most: f64,
    },
    /// A finite number from this on.
    AtLeast(f64),
    /// A finite number above this.
    Above(f64),
    Whole {
        least: u32,
        most: u32,
    },
    Time {
        least: Duration,
        most: Duration,
    },
    Name,
    OneOf(&'static [&'static str]),
    Key,
    Names,
    Exceptions,
    Flag,
}

/// What holds where a word is not given.
#[derive(Debug)]
pub(super) enum Default {
    /// The rule needs it, or one that says the same otherwise.
    Needed,
    Number(f64),
    Whole(u32),
    Time(Duration),
    Word(&'static str),
    /// Nothing: in words.
    Else(&'static str),
}

/// The kinds that data has, in the order in which messages list them.
pub(super) const KINDS: [RuleKind; 8] = [
    RuleKind::Flow,
    RuleKind::Isolation,
    RuleKind::SlowRatio,
    RuleKind::ErrorRatio,
    RuleKind::ErrorCount,
    RuleKind::Hot,
    RuleKind::Authority,
    RuleKind::System,
];

pub(super) const KIND_NAMES: [&str; 8] = {
    let mut names = [""; 8];
    let mut i = 0;
    while i < KINDS.len() {
        names[i] = KINDS[i].name();
        i += 1;
    }
    names
};

pub(super) const MODES: [&str; 3] = [Mode::Enforce.name(), Mode::Off.name(), Mode::Shadow.name()];

/// A precision as data has it.
pub(super) const fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Exact => "exact",
        Precision::Strict => "strict",
        Precision::Sentinel => "sentinel",
    }
}

const ANY_WHOLE: Takes = Takes::Whole { least: 0, most: u32::MAX };
const INTERVAL: Takes = Takes::Time { least: Duration::from_nanos(1), most: YEAR };
/// What is cut into buckets has at least a microsecond for each.
const WINDOW: Takes = Takes::Time { least: Duration::from_micros(1), most: YEAR };
const WAIT: Takes = Takes::Time { least: Duration::ZERO, most: YEAR };
const SHARE: Takes = Takes::Number { least: 0.0, most: 1.0 };
const BUCKETS: Takes = Takes::Whole { least: 1, most: flow::MAX_BUCKETS };

/// What every rule may say.
pub(super) const COMMON: [Word; 3] = [
    Word {
        name: "resource",
        takes: Takes::Name,
        default: Default::Needed,
        means: "the resource that the rule is for, or a pattern: `*` is any text, `\\*` a star; a system rule has none",
    },
    Word {
        name: "kind",
        takes: Takes::OneOf(&KIND_NAMES),
        default: Default::Needed,
        means: "what the rule does",
    },
    Word {
        name: "id",
        takes: Takes::Name,
        default: Default::Else("by kind and place"),
        means: "a name for the rule, by which it is found and keeps its state; given once, and to its version in shadow; \
                it does not end in `@shadow`",
    },
];

/// Stands among the words of each kind.
pub(super) const MODE: Word = Word {
    name: "mode",
    takes: Takes::OneOf(&MODES),
    default: Default::Word(MODES[0]),
    means: "whether the rule decides, is there and decides nothing, or is asked on the side",
};

const FLOW: [Word; 16] = [
    Word {
        name: "qps",
        takes: Takes::Permits { may_wait: true },
        default: Default::Needed,
        means: "permits per second",
    },
    Word {
        name: "limit",
        takes: Takes::Permits { may_wait: true },
        default: Default::Needed,
        means: "permits per interval, with `per_ms` and instead of `qps`",
    },
    Word {
        name: "per_ms",
        takes: INTERVAL,
        default: Default::Time(flow::INTERVAL),
        means: "the interval that `limit` is for",
    },
    Word {
        name: "behavior",
        takes: Takes::OneOf(&["reject", "warm_up", "throttle", "warm_up_throttle"]),
        default: Default::Word("reject"),
        means: "what becomes of calls above the limit",
    },
    Word {
        name: "warm_up_ms",
        takes: INTERVAL,
        default: Default::Time(flow::WARM_UP),
        means: "how long full load lasts until the whole limit is reached; with `warm_up`, `warm_up_throttle`",
    },
    Word {
        name: "cold_factor",
        takes: Takes::Above(1.0),
        default: Default::Number(flow::COLD_FACTOR),
        means: "how many times lower the limit is when cold, whole with `sentinel`; with `warm_up`, `warm_up_throttle`",
    },
    Word {
        name: "max_wait_ms",
        takes: WAIT,
        default: Default::Time(flow::MAX_WAIT),
        means: "the longest wait for a turn; with `throttle`, `warm_up_throttle`",
    },
    Word {
        name: "burst",
        takes: ANY_WHOLE,
        default: Default::Whole(0),
        means: "permits that an idle throttle starts at once; with `throttle`, and a precision other than `sentinel`",
    },
    Word {
        name: "precision",
        takes: Takes::OneOf(&["exact", "strict", "sentinel"]),
        default: Default::Else("`exact` up to 1024 permits, else `strict`"),
        means: "how exactly the limit holds; `exact` keeps at most 1048576 permits per interval",
    },
    Word {
        name: "buckets",
        takes: BUCKETS,
        default: Default::Whole(flow::N_BUCKETS),
        means: "the equal parts of at least 1 µs that the interval is counted in, unless it is counted exactly",
    },
    Word {
        name: "associated",
        takes: Takes::Name,
        default: Default::Else("its own calls"),
        means: "the resource whose calls are counted instead; with `reject`",
    },
    Word {
        name: "entrance",
        takes: Takes::Name,
        default: Default::Else("all calls"),
        means: "only calls that came in through this entrance",
    },
    Word {
        name: "origin",
        takes: Takes::Name,
        default: Default::Else("all calls"),
        means: "only calls of this origin",
    },
    Word {
        name: "other_origins",
        takes: Takes::Flag,
        default: Default::Word("false"),
        means: "calls of each origin that no rule names, each counted on its own",
    },
    Word {
        name: "each_origin",
        takes: Takes::Flag,
        default: Default::Word("false"),
        means: "calls of each origin, each counted on its own",
    },
    MODE,
];

const ISOLATION: [Word; 3] = [
    Word {
        name: "max_concurrency",
        takes: ANY_WHOLE,
        default: Default::Needed,
        means: "permits in flight at once",
    },
    Word {
        name: "queue_ms",
        takes: WAIT,
        default: Default::Time(Duration::ZERO),
        means: "how long a call above the limit waits for permits; 0 is not at all",
    },
    MODE,
];

const SLOW_RATIO: [Word; 2] = [
    Word {
        name: "slow_rt_ms",
        takes: Takes::Time { least: Duration::ZERO, most: Duration::MAX },
        default: Default::Needed,
        means: "the response time above which a call is slow",
    },
    Word {
        name: "slow_ratio",
        takes: SHARE,
        default: Default::Number(breaker::SLOW_RATIO),
        means: "the share of slow calls that is still borne; 1 trips when reached",
    },
];

const ERROR_RATIO: [Word; 1] = [Word {
    name: "error_ratio",
    takes: SHARE,
    default: Default::Needed,
    means: "the share of exceptions that is still borne; 1 trips when reached",
}];

const ERROR_COUNT: [Word; 1] = [Word {
    name: "error_count",
    takes: ANY_WHOLE,
    default: Default::Needed,
    means: "the number of exceptions that is still borne; under `window_calls`, where that is given",
}];

const BREAKER: [Word; 10] = [
    Word {
        name: "min_calls",
        takes: Takes::Whole { least: 1, most: u32::MAX },
        default: Default::Whole(breaker::MIN_CALLS),
        means: "the calls that a window needs before it means anything",
    },
    Word {
        name: "window_ms",
        takes: WINDOW,
        default: Default::Time(breaker::WINDOW),
        means: "how long a result counts",
    },
    Word {
        name: "buckets",
        takes: BUCKETS,
        default: Default::Whole(breaker::N_BUCKETS),
        means: "the equal parts of at least 1 µs in which results leave the window",
    },
    Word {
        name: "window_calls",
        takes: Takes::Whole { least: 1, most: breaker::MAX_CALLS },
        default: Default::Else("a window of time"),
        means: "judges by so many calls that ended last, instead of `window_ms`; at least `min_calls`",
    },
    Word {
        name: "open_ms",
        takes: INTERVAL,
        default: Default::Time(breaker::OPEN_FOR),
        means: "how long the breaker stays open before probes are let through",
    },
    Word {
        name: "open_max_ms",
        takes: INTERVAL,
        default: Default::Else("`open_ms`"),
        means: "how far the open time grows, doubling with each trip in a row; at least `open_ms`",
    },
    Word {
        name: "probes",
        takes: Takes::Whole { least: 1, most: breaker::MAX_PROBES },
        default: Default::Whole(breaker::PROBES),
        means: "the calls that decide a recovery",
    },
    Word {
        name: "recovery",
        takes: Takes::OneOf(&["probes", "ramp"]),
        default: Default::Word("probes"),
        means: "whether a rising share of calls follows the probes",
    },
    Word {
        name: "ramp_ms",
        takes: INTERVAL,
        default: Default::Else("`open_ms`"),
        means: "how long the share takes to rise; with `ramp`",
    },
    MODE,
];

const HOT: [Word; 11] = [
    Word {
        name: "key",
        takes: Takes::Key,
        default: Default::Needed,
        means: "what calls are told apart by: the name of a key, or its place from 0, from the end if negative",
    },
    Word {
        name: "qps",
        takes: Takes::Permits { may_wait: true },
        default: Default::Else("no limit of the rate"),
        means: "permits per second, or per `per_ms`, for each value; a rule has this or `max_concurrency`, or both",
    },
    Word {
        name: "per_ms",
        takes: INTERVAL,
        default: Default::Time(flow::INTERVAL),
        means: "the interval that `qps` is for; above 64 permits in 10 parts of at least 1 µs, unless throttled, with \
                `burst`, or by `sentinel`",
    },
    Word {
        name: "burst",
        takes: ANY_WHOLE,
        default: Default::Whole(0),
        means: "permits that a quiet value may have beyond `qps`",
    },
    Word {
        name: "max_concurrency",
        takes: ANY_WHOLE,
        default: Default::Else("no limit in flight"),
        means: "permits in flight at once for each value",
    },
    Word {
        name: "behavior",
        takes: Takes::OneOf(&["reject", "throttle"]),
        default: Default::Word("reject"),
        means: "what becomes of calls above `qps`",
    },
    Word {
        name: "max_wait_ms",
        takes: WAIT,
        default: Default::Time(flow::MAX_WAIT),
        means: "the longest wait for a turn; with `throttle`",
    },
    Word {
        name: "max_keys",
        takes: Takes::Whole { least: 1, most: hot::MAX_KEYS_AT_MOST },
        default: Default::Whole(hot::MAX_KEYS),
        means: "values told apart at a time",
    },
    Word {
        name: "precision",
        takes: Takes::OneOf(&["sentinel"]),
        default: Default::Else("as leap counts"),
        means: "Sentinel's arithmetic instead of leap's",
    },
    Word {
        name: "except",
        takes: Takes::Exceptions,
        default: Default::Else("none"),
        means: "values with a limit of their own: a list of `value` (or `char`, `integer`) and `limit`",
    },
    MODE,
];

const AUTHORITY: [Word; 3] = [
    Word {
        name: "allow",
        takes: Takes::Names,
        default: Default::Needed,
        means: "the only origins that may call",
    },
    Word {
        name: "deny",
        takes: Takes::Names,
        default: Default::Needed,
        means: "the origins that may not call; instead of `allow`",
    },
    MODE,
];

const SYSTEM: [Word; 7] = [
    Word {
        name: "load",
        takes: Takes::AtLeast(0.0),
        default: Default::Needed,
        means: "the machine's load average over a minute; of this and the next four a rule has one",
    },
    Word { name: "cpu", takes: SHARE, default: Default::Needed, means: "the share of the processor's quota" },
    Word {
        name: "qps",
        takes: Takes::Permits { may_wait: false },
        default: Default::Needed,
        means: "inbound permits per second",
    },
    Word {
        name: "max_concurrency",
        takes: ANY_WHOLE,
        default: Default::Needed,
        means: "inbound permits in flight at once",
    },
    Word {
        name: "avg_rt_ms",
        takes: INTERVAL,
        default: Default::Needed,
        means: "the average response time of inbound calls over a second",
    },
    Word {
        name: "precision",
        takes: Takes::OneOf(&["exact", "strict", "sentinel"]),
        default: Default::Else("of `qps` as a flow rule's"),
        means: "how exactly `qps` holds; `sentinel` has any system rule answer as Sentinel's",
    },
    MODE,
];

/// The words of a kind besides `kind`, `resource` and `id`: its own, and those that it shares with others.
pub(super) const fn parts(kind: RuleKind) -> (&'static [Word], &'static [Word]) {
    match kind {
        RuleKind::Flow => (&FLOW, &[]),
        RuleKind::Isolation => (&ISOLATION, &[]),
        RuleKind::SlowRatio => (&SLOW_RATIO, &BREAKER),
        RuleKind::ErrorRatio => (&ERROR_RATIO, &BREAKER),
        RuleKind::ErrorCount => (&ERROR_COUNT, &BREAKER),
        RuleKind::Hot => (&HOT, &[]),
        RuleKind::Authority => (&AUTHORITY, &[]),
        RuleKind::System => (&SYSTEM, &[]),
        // A check of the application's own is code, and no data.
        RuleKind::Custom => (&[], &[]),
    }
}

/// Both together, in the order in which they are written.
pub(super) fn of_kind(kind: RuleKind) -> impl Iterator<Item = &'static Word> {
    let (own, shared) = parts(kind);
    own.iter().chain(shared)
}

/// Whether a word is a flag, which says nothing where it is false.
pub(super) fn is_flag(name: &str) -> bool {
    let mut words = KINDS.into_iter().flat_map(of_kind);
    words.any(|word| word.name == name && matches!(word.takes, Takes::Flag))
}

impl Word {
    /// The name under which a time is text: `max_wait` of `max_wait_ms`.
    pub(super) fn twin(&self) -> Option<&'static str> {
        match self.takes {
            Takes::Time { .. } => self.name.strip_suffix("_ms"),
            _ => None,
        }
    }

    /// Its names.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.twin()].into_iter().flatten()
    }
}

impl fmt::Display for Takes {
    /// The type and the bounds, as the page of all fields has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permits { may_wait } => {
                f.write_str("number | 0, or 1 and more")?;
                f.write_str(if *may_wait { "; where calls wait, any from 0" } else { "" })
            }
            Self::AtLeast(least) => write!(f, "number | {least} and more"),
            Self::Number { least, most } => write!(f, "number | {least} to {most}"),
            Self::Above(bound) => write!(f, "number | above {bound}"),
            Self::Whole { least, most: u32::MAX } => {
                write!(f, "whole number | {least} and more, up to {}", u32::MAX)
            }
            Self::Whole { least, most } => write!(f, "whole number | {least} to {most}"),
            Self::Time { least, most: Duration::MAX } => write!(f, "time | {} and more", Bound(*least)),
            Self::Time { least, most } => write!(f, "time | {} to {}", Bound(*least), Bound(*most)),
            Self::Name => write!(f, "text | 1 to {NAME_MAX} bytes"),
            Self::OneOf(words) => {
                f.write_str("word | ")?;
                for (i, word) in words.iter().enumerate() {
                    write!(f, "{}`{word}`", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::Key => {
                write!(f, "text or whole number | 1 to {NAME_MAX} bytes; {} to {}", i32::MIN, i32::MAX)
            }
            Self::Names => write!(f, "list of text | at least one, each of 1 to {NAME_MAX} bytes"),
            Self::Exceptions => {
                write!(
                    f,
                    "list of maps | text of up to {NAME_MAX} bytes, whole numbers, `true`, `false`; as `qps`"
                )
            }
            Self::Flag => f.write_str("`true` or `false` |"),
        }
    }
}

/// A time as a bound.
struct Bound(Duration);

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::ZERO => f.write_str("0"),
            YEAR => f.write_str("366 d"),
            time => f.write_str(&super::time::text(time)),
        }
    }
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needed => f.write_str("needed"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Whole(number) => write!(f, "{number}"),
            Self::Time(Duration::ZERO) => f.write_str("0"),
            Self::Time(time) => write!(f, "{} ms", time.as_millis()),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Else(text) => f.write_str(text),
        }
    }
}
