//! What grows: resources, rules, buckets, hot values, threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leap_runtime::__private::CallSite;
use leap_runtime::{
    Behavior, Blocked, BreakerRule, FlowRule, HotRule, IsolationRule, Mode, Precision, Registry, Rule,
    RuleError, RuleSet, guarded,
};

use crate::calls::{call, call_by_name, repeat, site};
use crate::clock::Halting;
use crate::measure::{Point, Run, Series};
use crate::options::Options;

/// All that are asked for, ready to be called. The global registry is that of `clock`.
pub(crate) fn all(options: &Options, clock: &Halting, global: &Registry) -> Vec<Series> {
    let wants = |name: &&str| options.wants(name);
    let mut all = vec![];
    let mut rules = RuleSet::new();
    if RESOURCES.iter().any(wants) {
        let max = if options.quick { 10_000 } else { 100_000 };
        all.extend(resources(max, clock, global, &mut rules));
    }
    if RULES.iter().any(wants) {
        all.extend(rules_of_one(&mut rules));
    }
    if wants(&BUCKETS) {
        all.push(buckets(&mut rules));
    }
    if KEYS.iter().any(wants) {
        let max = if options.quick { 100_000 } else { 1_000_000 };
        all.extend(keys(max, clock, &mut rules));
    }
    if THREADS.iter().any(wants) || wants(&WORD_NAME) || options.wants("contention") {
        all.extend(threads(&mut rules));
    }
    global.load(rules).expect("the names are short");
    all.retain(|series| {
        options.wants(series.name) || options.wants("contention") && THREADS.contains(&series.name)
    });
    all
}

/// Of all that there are.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    RESOURCES.into_iter().chain(RULES).chain([BUCKETS]).chain(KEYS).chain(THREADS).chain([WORD_NAME])
}

/// Calls of a batch where nothing asks for more.
const CALLS: u64 = 10_000;

fn point(label: u64, warm: u64, calls: u64, run: impl Fn(u64) -> u64 + Sync + 'static) -> Point {
    Point { label: label.to_string(), threads: 1, calls, warm, run: Box::new(run) }
}

/// 0 to `n` in an order in which nothing lies beside what comes next, always the same.
fn scattered(n: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..n).collect();
    // An xorshift of Marsaglia's.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in (1..order.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let other = usize::try_from(state % (i as u64 + 1)).expect("below a million");
        order.swap(i, other);
    }
    order
}

fn powers_of_ten(max: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1), |n| Some(n * 10)).take_while(move |n| *n <= max)
}

/// 1 000 000 000 per `seconds`, in 100 buckets: never reached.
fn strict(seconds: u64) -> FlowRule {
    FlowRule::new(1e9, Behavior::Reject)
        .and_then(|rule| rule.with_precision(Precision::Strict))
        .and_then(|rule| rule.per(Duration::from_secs(seconds)))
        .expect("100 buckets divide any number of seconds")
}

/// 1 024 per 10 µs and a little more each: asked in full, and never reached while a call takes over 13 ns.
fn exact(i: u64) -> FlowRule {
    FlowRule::new(1_024.0, Behavior::Reject)
        .and_then(|rule| rule.with_precision(Precision::Exact))
        .and_then(|rule| rule.per(Duration::from_nanos(10_000 + 100 * i)))
        .expect("a log of 1 024 and an interval above zero")
}

/// Trips when more than half of the calls take over a minute.
fn breaker(i: u64) -> BreakerRule {
    BreakerRule::slow_ratio(Duration::from_secs(60) + Duration::from_millis(i), 0.5).expect("in range")
}

const RESOURCES: [&str; 6] = [
    "resources, by call site, the same one",
    "resources, by call site, scattered, time stands",
    "resources, by call site, scattered",
    "resources, by name, the same one",
    "resources, by name, scattered, time stands",
    "resources, by name, scattered",
];

/// Each under one strict limit. The largest number by name is of the global registry, which has them all.
fn resources(max: u64, clock: &Halting, global: &Registry, rules: &mut RuleSet) -> Vec<Series> {
    let name = |i: u64| format!("orders.of.customer.{i}");
    let order = |n: u64| scattered(n).into_iter().map(name);
    let under = |rules: RuleSet, n: u64| (0..n).fold(rules, |set, i| set.flow(name(i), strict(1)));
    *rules = under(std::mem::take(rules), max);
    let mut series = RESOURCES.map(|name| Series { name, note: "", points: vec![] });
    let notes = [
        "one resource is called, the others are there and were called before",
        "all are called, each as often; statistics need no turning: what is left is the processor's caches",
        "and time goes on: who is called seldom opens, with the call, the buckets missed in between",
        "as the first, by `Registry::enter`",
        "as the second, by `Registry::enter`",
        "as the third, by `Registry::enter`",
    ];
    for (series, note) in series.iter_mut().zip(notes) {
        series.note = note;
    }
    for n in powers_of_ten(max) {
        // A lap before each batch, so that none is at rest longer than a lap takes.
        let (lap, calls) = (n, CALLS.max(n));
        let sites: Arc<[&'static CallSite]> = order(n).map(site).collect();
        let names: Arc<[String]> = order(n).collect();
        let registry = if n == max {
            global.clone()
        } else {
            let registry = Registry::builder().clock(clock.clone()).max_resources(MANY).build();
            registry.load(under(RuleSet::new(), n)).expect("the names are short");
            registry
        };
        let of_sites = {
            let sites = Arc::clone(&sites);
            move |n| {
                let mut next = sites.iter().cycle();
                repeat(n, |x| next.next().is_some_and(|site| call(site, x)))
            }
        };
        let of_names = {
            let (names, registry) = (Arc::clone(&names), registry.clone());
            move |n| {
                let mut next = names.iter().cycle();
                repeat(n, |x| next.next().is_some_and(|name| call_by_name(&registry, name, x)))
            }
        };
        let one = {
            let sites = Arc::clone(&sites);
            move |n| repeat(n, |x| call(sites[0], x))
        };
        let one_name = move |n| repeat(n, |x| call_by_name(&registry, &names[0], x));
        let standing = |run: Run| {
            let clock = clock.clone();
            move |n| clock.stand(|| run(n))
        };
        let points = [
            point(n, 1_000, CALLS, one),
            point(n, lap, calls, standing(Box::new(of_sites.clone()))),
            point(n, lap, calls, of_sites),
            point(n, 1_000, CALLS, one_name),
            point(n, lap, calls, standing(Box::new(of_names.clone()))),
            point(n, lap, calls, of_names),
        ];
        for (series, point) in series.iter_mut().zip(points) {
            series.points.push(point);
        }
    }
    series.into()
}

/// Room for all resources of this program.
pub(crate) const MANY: usize = 300_000;

const RULES: [&str; 6] = [
    "rules: strict, one window",
    "rules: strict, a window each",
    "rules: exact",
    "rules: breakers",
    "rules: strict, exact, breaker, isolation in turn",
    "rules: strict in shadow",
];

fn rules_of_one(rules: &mut RuleSet) -> Vec<Series> {
    let one_window = |i: u64| {
        #[expect(clippy::cast_precision_loss, reason = "up to 32")]
        let limit = FlowRule::new(1e9 + i as f64, Behavior::Reject);
        limit.and_then(|rule| rule.with_precision(Precision::Strict)).expect("in range").into()
    };
    let mixed = |i: u64| match i % 4 {
        0 => Rule::from(strict(1 + i)),
        1 => exact(i).into(),
        2 => breaker(i).into(),
        _ => IsolationRule::new(1_000).into(),
    };
    let kinds: [(&'static str, &dyn Fn(u64) -> Rule); 6] = [
        ("1 000 000 000 per 1 s and a little more each: they share one ring", &one_window),
        ("1 000 000 000 per 1 s, 2 s and so on: each has a ring of 100 buckets", &|i| strict(1 + i).into()),
        ("1 024 per 10 µs and a little longer each: they share one log", &|i| exact(i).into()),
        ("on slow calls, each with a window of its own", &|i| breaker(i).into()),
        ("limits of both kinds, a breaker, an isolation, and again", &mixed),
        ("as the second, asked of every call and obeyed by none", &|i| {
            Rule::from(strict(1 + i)).with_mode(Mode::Shadow)
        }),
    ];
    let mut of_kind = |(name, (note, rule)): (&'static str, (&'static str, &dyn Fn(u64) -> Rule))| {
        let points = [1, 2, 4, 8, 16, 32].map(|n| {
            let resource = format!("{name} {n}");
            *rules = (0..n).fold(std::mem::take(rules), |set, i| set.rule(&resource, rule(i)));
            let site = site(resource);
            point(n, 1_000, CALLS, move |n| repeat(n, |x| call(site, x)))
        });
        Series { name, note, points: points.into() }
    };
    RULES.into_iter().zip(kinds).map(&mut of_kind).collect()
}

const BUCKETS: &str = "buckets of a strict limit";

fn buckets(rules: &mut RuleSet) -> Series {
    let points = [2, 10, 100, 1_000].map(|n| {
        let resource = format!("{BUCKETS} {n}");
        let rule = strict(1).with_buckets(n).expect("it divides a second");
        *rules = std::mem::take(rules).flow(&resource, rule);
        let site = site(resource);
        point(n.into(), 1_000, CALLS, move |n| repeat(n, |x| call(site, x)))
    });
    Series { name: BUCKETS, note: "1 000 000 000 per 1 s", points: points.into() }
}

const KEYS: [&str; 3] = [
    "keys of a hot rule, the same one",
    "keys of a hot rule, scattered, time stands",
    "keys of a hot rule, scattered",
];

/// The functions whose calls have a key, with the names of their resources, each with room for so many.
macro_rules! keyed {
    ($($function:ident $name:literal $n:literal)*) => {
        $(
            #[guarded(resource = $name, hot(key = key, name = "user"))]
            #[inline(never)]
            fn $function(key: u64) -> Result<u64, Blocked> {
                Ok(key)
            }
        )*

        const KEYED: &[(u32, &str, fn(u64) -> Result<u64, Blocked>)] = &[$(($n, $name, $function)),*];
    };
}

keyed! {
    one_key "growth.keys.1" 1
    hundred_keys "growth.keys.100" 100
    ten_thousand_keys "growth.keys.10000" 10_000
    hundred_thousand_keys "growth.keys.100000" 100_000
    million_keys "growth.keys.1000000" 1_000_000
}

/// 1 000 000 000 per 1 s of each key, in 10 buckets.
fn each_key(max_keys: u32) -> Result<HotRule, RuleError> {
    HotRule::qps("user", 1e9)?.with_max_keys(max_keys)
}

fn keys(max: u32, clock: &Halting, rules: &mut RuleSet) -> Vec<Series> {
    let mut series = KEYS.map(|name| Series { name, note: "", points: vec![] });
    let notes = [
        "1 000 000 000 per 1 s of each key; one is called, the others are kept",
        "all are called, each as often, and no ring has to turn: what is left is the processor's caches",
        "and time goes on: who is called seldom opens, with the call, the buckets missed in between",
    ];
    for (series, note) in series.iter_mut().zip(notes) {
        series.note = note;
    }
    for (n, resource, function) in KEYED.iter().copied().filter(|(n, ..)| *n <= max) {
        let rule = each_key(n).expect("in range");
        *rules = std::mem::take(rules).hot(resource, rule);
        let lap = u64::from(n);
        let order: Arc<[u64]> = scattered(lap).into();
        let in_turn = move |n| {
            let mut next = order.iter().cycle();
            repeat(n, |_| next.next().is_some_and(|key| function(*key).is_ok()))
        };
        let one = {
            let in_turn = in_turn.clone();
            let is_filled = std::sync::Once::new();
            move |n| {
                // The others are to be there too.
                is_filled.call_once(|| _ = std::hint::black_box(in_turn(lap)));
                repeat(n, |_| function(0).is_ok())
            }
        };
        let standing = {
            let (clock, in_turn) = (clock.clone(), in_turn.clone());
            move |n| clock.stand(|| in_turn(n))
        };
        let points = [
            point(lap, 1_000, CALLS, one),
            point(lap, lap, CALLS.max(lap), standing),
            point(lap, lap, CALLS.max(lap), in_turn),
        ];
        for (series, point) in series.iter_mut().zip(points) {
            series.points.push(point);
        }
    }
    series.into()
}

/// In the order of [`contention::PATHS`](crate::contention::PATHS), which says what their calls write.
pub(crate) const THREADS: [&str; 7] = [
    "threads on one resource: no rule",
    "threads on one resource: exact",
    "threads on one resource: strict",
    "threads on one resource: exact and breaker",
    "threads on one resource: strict and breaker",
    "threads on one resource: isolation",
    "threads on one resource: hot, one key",
];

#[guarded(resource = "growth.threads.hot", hot(key = key, name = "user"))]
#[inline(never)]
fn hot(key: u64) -> Result<u64, Blocked> {
    Ok(key)
}

const WORD_NAME: &str = "threads on one word";

static WORD: AtomicU64 = AtomicU64::new(0);

fn threads(rules: &mut RuleSet) -> Vec<Series> {
    let mut set = std::mem::take(rules);
    let sites = THREADS.map(|name| site(name.to_owned()));
    let [_, exact_only, strict_only, exact_breaker, strict_breaker, isolated, _] = THREADS;
    for name in [exact_only, exact_breaker] {
        set = set.flow(name, exact(0));
    }
    for name in [strict_only, strict_breaker] {
        set = set.flow(name, strict(1));
    }
    for name in [exact_breaker, strict_breaker] {
        set = set.breaker(name, breaker(0));
    }
    set = set.isolation(isolated, IsolationRule::new(1_000));
    *rules = set.hot("growth.threads.hot", each_key(10).expect("in range"));
    let of = |(name, site): (&'static str, &'static CallSite)| {
        let run = || -> Run {
            if name.ends_with("hot, one key") {
                Box::new(|n| repeat(n, |_| hot(7).is_ok()))
            } else {
                Box::new(move |n| repeat(n, |x| call(site, x)))
            }
        };
        let points = [1, 2].map(|threads| Point { threads, ..point(threads as u64, 1_000, CALLS, run()) });
        Series { name, note: "ns per call of a thread, with so many threads", points: points.into() }
    };
    let mut all: Vec<_> = THREADS.into_iter().zip(sites).map(of).collect();
    // What the processor can do at best.
    let run = |n| repeat(n, |_| WORD.fetch_add(1, Relaxed) < u64::MAX);
    let points = [1, 2].map(|threads| Point { threads, ..point(threads as u64, 1_000, CALLS, run) });
    all.push(Series {
        name: WORD_NAME,
        note: "one `fetch_add`, ns per call of a thread, with so many threads",
        points: points.into(),
    });
    all
}
