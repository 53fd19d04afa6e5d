//! What happened, as plain values: per resource, for the last second, the last minute, and since the start.

use std::fmt;
use std::time::{Duration, SystemTime};

use crate::blocked::Cause;
use crate::check::breaker::Breaker;
use crate::check::figures::ShadowStats;
use crate::check::hot::Hot;
use crate::clock::Timestamp;
use crate::event::Outcome;
use crate::key::Key;
use crate::node::Counts;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rule::{BreakerState, Mode, Rule, RuleId};
use crate::share::Share;

impl Registry {
    /// The statistics of a resource; none if nobody has entered it or loaded rules for it.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::Registry;
    ///
    /// let registry = Registry::new();
    /// registry.enter("orders.create")?.run(|| Ok::<_, ()>(())).unwrap();
    ///
    /// let stats = registry.stats("orders.create").expect("it was entered");
    /// assert_eq!((stats.second().passed(), stats.minute().success(), stats.in_flight()), (1, 1, 0));
    /// println!("{stats}");
    /// # Ok::<(), leap_runtime::Blocked>(())
    /// ```
    pub fn stats(&self, resource: &str) -> Option<ResourceStats> {
        self.find(resource).map(|resource| ResourceStats::of(&resource))
    }

    /// The statistics of all resources, in the order of their names, each read when the iterator comes to it.
    pub fn resources(&self) -> impl Iterator<Item = ResourceStats> + use<> {
        self.all().into_iter().map(|resource| ResourceStats::of(&resource))
    }

    /// The last second of all resources as a table to print, a line each.
    pub fn table(&self) -> StatsTable {
        StatsTable(self.resources().collect())
    }
}

/// What happened to a resource.
///
/// Counts are in permits (a call of 3 permits that passed counts 3 as passed, and 3 as success when it ended well);
/// [`Traffic::calls`], response times and breakers speak of calls. [`Display`](fmt::Display) prints it all.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ResourceStats {
    resource: String,
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::unix_ms", rename = "at_unix_ms"))]
    at: SystemTime,
    second: Traffic,
    minute: Traffic,
    #[cfg_attr(feature = "serde", serde(rename = "minute_rt_ms"))]
    percentiles: Option<Percentiles>,
    totals: Traffic,
    is_guarded: bool,
    in_flight: u64,
    waiting: u64,
    queued: u64,
    previous_second_passed: u64,
    breakers: Vec<BreakerStats>,
    hot: Vec<HotStats>,
    shadows: Vec<ShadowStats>,
    origins: Vec<ShareStats>,
    entrances: Vec<ShareStats>,
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::rules"))]
    rules: Vec<(RuleId, Rule)>,
}

impl ResourceStats {
    fn of(resource: &Resource) -> Self {
        let (node, environment) = (resource.node(), resource.environment());
        let now = environment.now();
        resource.turn(now);
        let plan = resource.plan();
        let minute = Traffic::of(&node.minute_counts(now), Extremes::Kept);
        Self {
            resource: resource.name().to_string(),
            at: environment.wall(),
            second: Traffic::of(&node.second(now), Extremes::Kept),
            minute,
            percentiles: node
                .quantiles(now, [0.5, 0.9, 0.99, 0.999])
                .map(|found| Percentiles::within(found, &minute)),
            totals: Traffic::of(&node.since_start(), Extremes::NotKept),
            is_guarded: !resource.is_off(),
            in_flight: plan.isolation().map_or_else(
                || node.in_flight(),
                |isolation| {
                    // The isolation's word is exact, but knows only the calls since it stands, and those too that wait for
                    // their start.
                    node.in_flight().max(u64::from(isolation.in_flight()).saturating_sub(node.n_waiting()))
                },
            ),
            waiting: node.n_waiting(),
            queued: plan.isolation().map_or(0, |isolation| isolation.queued().into()),
            previous_second_passed: node.passed_in_previous_second(now),
            breakers: plan.breakers().iter().map(|breaker| BreakerStats::of(breaker, now)).collect(),
            hot: plan.hot().iter().map(|hot| HotStats::of(hot, environment.hides_values(), now)).collect(),
            shadows: plan.shadow_stats(),
            origins: resource.origins().all().iter().map(|share| ShareStats::of(share, now)).collect(),
            entrances: resource.entrances().all().iter().map(|share| ShareStats::of(share, now)).collect(),
            rules: plan.rules().to_vec(),
        }
    }

    /// The resource's name.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The wall clock's time when these were read: a label, nothing was decided by it.
    pub fn at(&self) -> SystemTime {
        self.at
    }

    /// The last second, the running bucket included.
    pub fn second(&self) -> &Traffic {
        &self.second
    }

    /// The last minute, the running second included.
    pub fn minute(&self) -> &Traffic {
        &self.minute
    }

    /// Everything since the start. These only grow, but for [`calls`](Traffic::calls).
    pub fn totals(&self) -> &Traffic {
        &self.totals
    }

    /// Whether calls are guarded: neither the registry nor the resource is [turned off](Registry::turn_off).
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// Permits passed in the full second before the running one.
    pub fn previous_second_passed(&self) -> u64 {
        self.previous_second_passed
    }

    /// Percentiles of the response times of the last 45 to 60 s; none if nothing completed in them.
    pub fn percentiles(&self) -> Option<&Percentiles> {
        self.percentiles.as_ref()
    }

    /// Permits passed, started and not yet completed.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Permits passed whose calls wait for their start: they are paced.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Calls that queue for permits of an isolation. They have not passed.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// For each hot rule, the up to `k` values that were asked for most in its last window, at most 100.
    ///
    /// # Examples
    ///
    /// ```
    /// use leap_runtime::{HotRule, Registry, RuleSet};
    ///
    /// let registry = Registry::new();
    /// registry.load(RuleSet::new().hot("search", HotRule::qps("user", 10.0)?))?;
    /// for user in ["ann", "bob", "ann"] {
    ///     drop(registry.enter_with("search").key("user", user).enter()?);
    /// }
    /// let stats = registry.stats("search").unwrap();
    /// let users = stats.hot(10).remove(0);
    /// assert_eq!((users.top()[0].value(), users.top()[0].permits()), ("ann", 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hot(&self, k: usize) -> Vec<HotStats> {
        self.hot.iter().map(|hot| hot.first(k)).collect()
    }

    /// What happened by origin, for those calls that had one.
    pub fn origins(&self) -> &[ShareStats] {
        &self.origins
    }

    /// What happened by entrance, for those calls that came in by one.
    pub fn entrances(&self) -> &[ShareStats] {
        &self.entrances
    }

    /// The breakers, in the order in which they are asked.
    pub fn breakers(&self) -> &[BreakerStats] {
        &self.breakers
    }

    /// What the rules in [shadow](Mode::Shadow) would have done, in the order of the rules.
    pub fn shadows(&self) -> &[ShadowStats] {
        &self.shadows
    }

    /// The rules at work, with those that are switched off or in shadow.
    pub fn rules(&self) -> impl Iterator<Item = (&RuleId, &Rule)> {
        self.rules.iter().map(|(id, rule)| (id, rule))
    }
}

/// What happened to the calls of a resource that have one origin, or came in by one entrance.
///
/// Up to 200 of each have numbers of their own; further ones are counted together as `(other)`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ShareStats {
    name: String,
    second: Traffic,
    minute: Traffic,
    totals: Traffic,
    in_flight: u64,
}

impl ShareStats {
    /// To be called with a reading of the resource's clock.
    pub(crate) fn of(share: &Share, now: Timestamp) -> Self {
        share.turn(now);
        let node = share.node();
        Self {
            name: share.name().to_owned(),
            second: Traffic::of(&node.second(now), Extremes::Kept),
            minute: Traffic::of(&node.minute_counts(now), Extremes::Kept),
            totals: Traffic::of(&node.since_start(), Extremes::NotKept),
            in_flight: node.in_flight(),
        }
    }

    /// The origin or entrance.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last second, the running bucket included.
    pub fn second(&self) -> &Traffic {
        &self.second
    }

    /// The last minute, the running second included.
    pub fn minute(&self) -> &Traffic {
        &self.minute
    }

    /// Everything since the start. These only grow, but for [`calls`](Traffic::calls).
    pub fn totals(&self) -> &Traffic {
        &self.totals
    }

    /// Permits passed and not yet completed.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
}

/// The values of a parameter, by how often they were asked for.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HotStats {
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::text"))]
    rule: RuleId,
    n_values: u32,
    missing: u64,
    overflowed: u64,
    top: Vec<HotValue>,
}

/// The most values that are told of.
const TOP_MAX: usize = 100;

impl HotStats {
    fn of(hot: &Hot, hides_values: bool, now: Timestamp) -> Self {
        let shown = |(key, permits, excess): (Key, u64, u64)| HotValue {
            value: if hides_values { key.hashed().to_string() } else { key.to_string() },
            permits,
            excess,
        };
        Self {
            rule: hot.id().clone(),
            n_values: hot.n_keys(),
            missing: hot.missing(),
            overflowed: hot.overflowed(),
            top: hot.top(now, TOP_MAX).into_iter().map(shown).collect(),
        }
    }

    fn first(&self, k: usize) -> Self {
        let Self { ref rule, n_values, missing, overflowed, ref top } = *self;
        Self { rule: rule.clone(), n_values, missing, overflowed, top: top.iter().take(k).cloned().collect() }
    }

    /// The rule that counts by the parameter.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// How many values are counted on their own at present.
    pub fn n_values(&self) -> u32 {
        self.n_values
    }

    /// Calls that did not have the parameter, since the start. The rule does not apply to them: if all calls are missing,
    /// no call gives a key of the rule's name.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// How often a value was counted together with others because there were too many of them, since the start.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The values that were asked for most in the last window, in falling order.
    pub fn top(&self) -> &[HotValue] {
        &self.top
    }
}

/// A value of a parameter that was asked for often.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HotValue {
    value: String,
    permits: u64,
    excess: u64,
}

impl HotValue {
    /// The value as text, or its hash if the registry was [told to hide](crate::Builder::hide_values) values.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The permits that calls with this value asked the rule for, blocked ones included; calls that a rule before it blocked
    /// did not come to ask.
    pub fn permits(&self) -> u64 {
        self.permits
    }

    /// By how much [`permits`](Self::permits) may be too many, where more values came than are told apart.
    pub fn excess(&self) -> u64 {
        self.excess
    }
}

/// Whether a span has extremes to tell of.
#[derive(Clone, Copy)]
enum Extremes {
    Kept,
    NotKept,
}

/// What happened in a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Traffic {
    passed: u64,
    calls: u64,
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::by_cause"))]
    blocked: [u64; Cause::ALL.len()],
    success: u64,
    exception: u64,
    ignored: u64,
    cancelled: u64,
    #[cfg_attr(feature = "serde", serde(rename = "rt_min_ms", serialize_with = "json::ms"))]
    rt_min: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(rename = "rt_avg_ms", serialize_with = "json::ms"))]
    rt_avg: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(rename = "rt_max_ms", serialize_with = "json::ms"))]
    rt_max: Option<Duration>,
    peak_in_flight: Option<u64>,
}

impl Traffic {
    fn of(counts: &Counts, extremes: Extremes) -> Self {
        let peak_in_flight = match extremes {
            Extremes::Kept => Some(counts.peak),
            Extremes::NotKept => None,
        };
        Self {
            passed: counts.passed,
            calls: counts.passed_calls,
            blocked: counts.blocked,
            success: counts.of(Outcome::Success),
            exception: counts.of(Outcome::Exception),
            ignored: counts.of(Outcome::Ignored),
            cancelled: counts.of(Outcome::Cancelled),
            rt_min: counts.rt_min,
            rt_avg: counts.rt_ns.checked_div(counts.timed_calls).map(Duration::from_nanos),
            rt_max: counts.rt_max,
            peak_in_flight,
        }
    }

    /// Permits let through.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Calls let through, whatever their permits. One of several permits, or one that is charged, is told as several for the
    /// moment in which it is being counted.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Permits turned away, in all.
    pub fn blocked(&self) -> u64 {
        self.blocked.iter().sum()
    }

    /// Permits turned away by one kind of rule.
    pub fn blocked_by(&self, cause: Cause) -> u64 {
        self.blocked[cause as usize]
    }

    /// Permits of calls that ended well.
    pub fn success(&self) -> u64 {
        self.success
    }

    /// Permits of calls that ended with an error that counts, or a panic.
    pub fn exception(&self) -> u64 {
        self.exception
    }

    /// Permits of calls that completed without a verdict.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Permits of calls that were dropped before they completed.
    pub fn cancelled(&self) -> u64 {
        self.cancelled
    }

    /// Permits of calls that ended, in whatever way.
    pub fn completed(&self) -> u64 {
        self.success + self.exception + self.ignored + self.cancelled
    }

    /// The shortest response time; none if nothing completed, and for totals.
    pub fn rt_min(&self) -> Option<Duration> {
        self.rt_min
    }

    /// The mean response time; none if nothing completed.
    pub fn rt_avg(&self) -> Option<Duration> {
        self.rt_avg
    }

    /// The longest response time; none if nothing completed, and for totals.
    pub fn rt_max(&self) -> Option<Duration> {
        self.rt_max
    }

    /// The most permits in flight at once; none for totals.
    ///
    /// Where more than 10 000 calls a second find another one in flight, it is looked at once in 10 µs instead of with
    /// each call: a peak that is shorter may be missed then. It is never more than there were.
    pub fn peak_in_flight(&self) -> Option<u64> {
        self.peak_in_flight
    }
}

/// Percentiles of response times, read from a histogram with a relative error of at most 6 %; below 1 µs the error is at most
/// 64 ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles([Duration; 4]);

impl Percentiles {
    /// A histogram's values are the middles of its buckets: none is shown outside of what was really seen.
    fn within(found: [Duration; 4], minute: &Traffic) -> Self {
        let (min, max) = (minute.rt_min.unwrap_or(Duration::ZERO), minute.rt_max.unwrap_or(Duration::MAX));
        Self(found.map(|time| time.max(min).min(max)))
    }

    /// Half of the calls took about this or less.
    pub fn p50(&self) -> Duration {
        self.0[0]
    }

    /// Nine of ten calls took about this or less.
    pub fn p90(&self) -> Duration {
        self.0[1]
    }

    /// 99 of 100 calls took about this or less.
    pub fn p99(&self) -> Duration {
        self.0[2]
    }

    /// 999 of 1 000 calls took about this or less.
    pub fn p99_9(&self) -> Duration {
        self.0[3]
    }
}

/// Where a breaker stands.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BreakerStats {
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::text"))]
    rule: RuleId,
    #[cfg_attr(feature = "serde", serde(serialize_with = "json::text"))]
    state: BreakerState,
    #[cfg_attr(feature = "serde", serde(rename = "next_probe_ms", serialize_with = "json::ms"))]
    next_probe: Option<Duration>,
    calls: u32,
    bad_calls: u32,
    stuck_probes: u64,
    share_percent: Option<u16>,
}

impl BreakerStats {
    fn of(breaker: &Breaker, now: Timestamp) -> Self {
        let figures = breaker.figures(now);
        Self {
            rule: breaker.id().clone(),
            state: figures.state,
            next_probe: figures.next_probe,
            calls: figures.sample.calls,
            bad_calls: figures.sample.bad,
            stuck_probes: figures.stuck_probes,
            share_percent: figures.share,
        }
    }

    /// The breaker's rule.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// Its state. An open breaker stays so until a call probes it.
    pub fn state(&self) -> BreakerState {
        self.state
    }

    /// How long until a call may probe it, 0 if the next one may; none while it is closed, or its probes are out.
    pub fn next_probe(&self) -> Option<Duration> {
        self.next_probe
    }

    /// The percentage of calls that it lets through, while that rises after a recovery.
    pub fn share_percent(&self) -> Option<u16> {
        self.share_percent
    }

    /// The calls of its window that have a verdict.
    pub fn calls(&self) -> u32 {
        self.calls
    }

    /// Those of them that were slow, or exceptions, as the rule has it.
    pub fn bad_calls(&self) -> u32 {
        self.bad_calls
    }

    /// How often probes were written off because they had not ended after the open time.
    pub fn stuck_probes(&self) -> u64 {
        self.stuck_probes
    }
}

impl fmt::Display for ResourceStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spans = [&self.second, &self.minute, &self.totals];
        writeln!(
            f,
            "{:<22} {:>11} {:>11} {:>13}",
            self.resource, "last second", "last minute", "since start"
        )?;
        let mut row = |name: &str, figure: &dyn Fn(&Traffic) -> String| {
            let [second, minute, totals] = spans.map(figure);
            writeln!(f, "  {name:<20} {second:>11} {minute:>11} {totals:>13}")
        };
        row("passed", &|span| span.passed.to_string())?;
        row("blocked", &|span| span.blocked().to_string())?;
        for cause in Cause::ALL {
            if self.totals.blocked_by(cause) > 0 {
                row(&format!("  by {cause}"), &|span| span.blocked_by(cause).to_string())?;
            }
        }
        row("success", &|span| span.success.to_string())?;
        row("exception", &|span| span.exception.to_string())?;
        row("ignored", &|span| span.ignored.to_string())?;
        row("cancelled", &|span| span.cancelled.to_string())?;
        row("rt min", &|span| time(span.rt_min))?;
        row("rt avg", &|span| time(span.rt_avg))?;
        row("rt max", &|span| time(span.rt_max))?;
        row("peak in flight", &|span| {
            span.peak_in_flight.map_or_else(|| "-".to_owned(), |peak| peak.to_string())
        })?;
        if let Some(percentiles) = &self.percentiles {
            for (name, value) in ["rt p50", "rt p90", "rt p99", "rt p99.9"].iter().zip(percentiles.0) {
                writeln!(f, "  {name:<20}{:>12}{:>12}", "", time(Some(value)))?;
            }
        }
        write!(f, "  {:<20}{:>12}", "in flight", self.in_flight)?;
        if !self.is_guarded {
            write!(f, "\n  {:<20}{:>12}", "guarding", "off")?;
        }
        if self.waiting > 0 {
            write!(f, "\n  {:<20}{:>12}", "waiting", self.waiting)?;
        }
        if self.queued > 0 {
            write!(f, "\n  {:<20}{:>12}", "queued", self.queued)?;
        }
        for (what, shares) in [("origin", &self.origins), ("entrance", &self.entrances)] {
            for share in shares {
                write!(f, "\n  {what:<20}{share}")?;
            }
        }
        for hot in &self.hot {
            write!(f, "\n  {:<20}{hot}", "hot values")?;
        }
        for breaker in &self.breakers {
            write!(f, "\n  {:<20}{breaker}", "breaker")?;
        }
        for (id, rule) in &self.rules {
            let mode = match rule.mode() {
                Mode::Enforce => "",
                Mode::Off => " (off)",
                Mode::Shadow => " (shadow)",
            };
            write!(f, "\n  {:<20}{rule}{mode}  [{id}]", "rule")?;
        }
        for shadow in &self.shadows {
            write!(f, "\n  {:<20}{shadow}", "in shadow")?;
        }
        Ok(())
    }
}

impl fmt::Display for ShareStats {
    /// The last second in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, second, in_flight, .. } = self;
        let (passed, blocked) = (second.passed, second.blocked());
        write!(f, "{name}: {passed} passed, {blocked} blocked in the last second, {in_flight} in flight")
    }
}

impl fmt::Display for HotStats {
    /// The ten hottest values in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} values", self.rule, self.n_values)?;
        for (i, HotValue { value, permits, .. }) in self.top.iter().take(10).enumerate() {
            write!(f, "{} {value} ({permits})", if i == 0 { ";" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for BreakerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {} of {} calls bad",
            self.rule.kind().name(),
            self.state,
            self.bad_calls,
            self.calls
        )?;
        match self.next_probe {
            _ if let Some(share) = self.share_percent => write!(f, ", {share}% let through"),
            Some(Duration::ZERO) => f.write_str(", the next call is a probe"),
            Some(wait) => write!(f, ", next probe in {wait:.1?}"),
            None => Ok(()),
        }
    }
}

/// The last second of all resources, and the last minute's 99th percentile. [`Display`](fmt::Display) prints a line
/// each, aligned.
#[derive(Clone, Debug)]
pub struct StatsTable(Vec<ResourceStats>);

impl fmt::Display for StatsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|stats| stats.resource.chars().count()).max().unwrap_or(0).max(8);
        write!(
            f,
            "{:<width$} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}  breakers",
            "resource", "passed", "blocked", "success", "except.", "rt avg", "p99 (1m)", "in flight"
        )?;
        for stats in &self.0 {
            let second = &stats.second;
            let p99 = stats.percentiles.map(|percentiles| percentiles.p99());
            write!(
                f,
                "\n{:<width$} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9}  ",
                stats.resource,
                second.passed,
                second.blocked(),
                second.success,
                second.exception,
                time(second.rt_avg),
                time(p99),
                stats.in_flight
            )?;
            let states: Vec<String> =
                stats.breakers.iter().map(|breaker| breaker.state.to_string()).collect();
            f.write_str(if states.is_empty() { "-" } else { "" })?;
            f.write_str(&states.join(", "))?;
        }
        Ok(())
    }
}

fn time(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.1?}"))
}

#[cfg(feature = "serde")]
mod json {
    //! Durations as milliseconds, names as text; absent figures as null.

    use std::fmt::Display;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

    use super::Percentiles;
    use crate::blocked::Cause;
    use crate::rule::{Mode, Rule, RuleId};

    /// Divided once, so that 64 ns are 0.000064 and not a little more.
    #[expect(clippy::cast_precision_loss, reason = "exact up to 104 days")]
    fn millis(time: Duration) -> f64 {
        time.as_nanos() as f64 / 1e6
    }

    #[expect(clippy::ref_option, reason = "the signature that serde calls")]
    pub(super) fn ms<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(millis).serialize(serializer)
    }

    pub(super) fn unix_ms<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
    }

    pub(super) fn text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn by_cause<S: Serializer>(
        blocked: &[u64; Cause::ALL.len()],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(blocked.len() + 1))?;
        map.serialize_entry("all", &blocked.iter().sum::<u64>())?;
        for (cause, n) in Cause::ALL.iter().zip(blocked) {
            map.serialize_entry(cause.name(), n)?;
        }
        map.end()
    }

    #[derive(serde::Serialize)]
    struct RuleAtWork {
        id: String,
        kind: &'static str,
        rule: String,
        mode: Mode,
    }

    pub(super) fn rules<S: Serializer>(rules: &[(RuleId, Rule)], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(rules.len()))?;
        for (id, rule) in rules {
            list.serialize_element(&RuleAtWork {
                id: id.to_string(),
                kind: rule.kind().name(),
                rule: rule.to_string(),
                mode: rule.mode(),
            })?;
        }
        list.end()
    }

    impl Serialize for Percentiles {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(4))?;
            for (name, time) in ["p50", "p90", "p99", "p99_9"].iter().zip(self.0) {
                map.serialize_entry(name, &millis(time))?;
            }
            map.end()
        }
    }
}
