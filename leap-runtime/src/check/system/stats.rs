//! What system rules see, as plain values.

use std::fmt;
use std::time::Duration;

use crate::check::figures::ShadowStats;
use crate::rule::{Dimension, RuleId};

/// What the system rules of a registry see: the machine, and all inbound calls together.
///
/// Inbound calls are counted from the moment at which the first system rule is loaded; what was counted before that is
/// not in here. Counts are in permits.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SystemStats {
    pub(super) load: Option<f64>,
    pub(super) cpu_of_quota: Option<f64>,
    pub(super) quota: Option<f64>,
    pub(super) inbound_qps: u64,
    pub(super) inbound_in_flight: u64,
    pub(super) avg_rt_s: Option<f64>,
    pub(super) min_rt_s: Option<f64>,
    pub(super) estimate: f64,
    pub(super) ignored_samples: u64,
    pub(super) dimensions: Vec<DimensionStats>,
    pub(super) shadows: Vec<ShadowStats>,
}

impl SystemStats {
    /// The machine's load average over one minute; none where nobody has found one within the last 10 s.
    pub fn load(&self) -> Option<f64> {
        self.load
    }

    /// The processor time that this process's group used between the last two samples, as a share of its quota, or of the
    /// machine where there is no [`quota`](Self::quota). It is not the share of this process alone. None where nobody has
    /// found one within the last 10 s.
    pub fn cpu_of_quota(&self) -> Option<f64> {
        self.cpu_of_quota
    }

    /// The quota, in processors; none where the figures are the machine's.
    pub fn quota(&self) -> Option<f64> {
        self.quota
    }

    /// Inbound permits that the system rules let through within the last second.
    pub fn inbound_qps(&self) -> u64 {
        self.inbound_qps
    }

    /// Inbound permits in flight.
    pub fn inbound_in_flight(&self) -> u64 {
        self.inbound_in_flight
    }

    /// The average response time of inbound calls that ended within the last second; none where none did.
    pub fn avg_rt(&self) -> Option<Duration> {
        self.avg_rt_s.map(Duration::from_secs_f64)
    }

    /// The shortest response time of inbound calls that ended within the last second; none where none did.
    pub fn min_rt(&self) -> Option<Duration> {
        self.min_rt_s.map(Duration::from_secs_f64)
    }

    /// How many inbound permits in flight get through, as estimated from the last second. It is asked only while load or
    /// CPU is too high; 10 where nothing is known.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Figures of a probe that were ignored because they made no sense.
    pub fn ignored_samples(&self) -> u64 {
        self.ignored_samples
    }

    /// What the rules watch, in the order in which it is asked.
    pub fn dimensions(&self) -> &[DimensionStats] {
        &self.dimensions
    }

    /// What the rules in [shadow](crate::Mode::Shadow) would have done.
    pub fn shadows(&self) -> &[ShadowStats] {
        &self.shadows
    }
}

impl fmt::Display for SystemStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure =
            |figure: Option<f64>| figure.map_or("unavailable".to_owned(), |figure| format!("{figure:.2}"));
        write!(f, "system: load {}, cpu {}", figure(self.load), figure(self.cpu_of_quota))?;
        match self.quota {
            Some(quota) => write!(f, " of a quota of {quota} processors"),
            None => f.write_str(" of the machine"),
        }?;
        write!(
            f,
            "; inbound: {} in the last second, {} in flight (estimate {:.1})",
            self.inbound_qps, self.inbound_in_flight, self.estimate
        )?;
        if let Some(avg_rt) = self.avg_rt_s {
            write!(f, ", {:.1}ms on average", avg_rt * 1e3)?;
        }
        if self.ignored_samples > 0 {
            write!(f, "; {} figures ignored", self.ignored_samples)?;
        }
        for dimension in &self.dimensions {
            write!(f, "\n  {dimension}")?;
        }
        for shadow in &self.shadows {
            write!(f, "\n  in shadow: {shadow}")?;
        }
        Ok(())
    }
}

/// What the lowest rule on one dimension allows, and what it sees.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DimensionStats {
    #[cfg_attr(feature = "serde", serde(serialize_with = "by_name"))]
    pub(super) dimension: Dimension,
    #[cfg_attr(feature = "serde", serde(serialize_with = "by_display"))]
    pub(super) rule: RuleId,
    pub(super) limit: f64,
    pub(super) observed: Option<f64>,
}

impl DimensionStats {
    /// The dimension.
    pub fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// The rule with the lowest limit.
    pub fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// That limit: permits per second, permits in flight, seconds, a load, or a share of the quota.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// The figure now, in the same unit; none where there is none, and then the rule refuses nothing.
    pub fn observed(&self) -> Option<f64> {
        self.observed
    }

    /// Whether there is a figure for the rule to go by.
    pub fn is_available(&self) -> bool {
        self.observed.is_some()
    }
}

impl fmt::Display for DimensionStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension, rule, limit, observed } = self;
        let (factor, unit) = if *dimension == Dimension::AvgRt { (1e3, "ms") } else { (1.0, "") };
        let (readable, limit) = (|figure: f64| (figure * factor * 1e3).round() / 1e3, limit * factor);
        match observed {
            Some(observed) => {
                write!(f, "{dimension}: {}{unit} of at most {limit}{unit} ({rule})", readable(*observed))
            }
            None => write!(f, "{dimension}: unavailable, so the limit of {limit}{unit} is inactive ({rule})"),
        }
    }
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn by_name<S: serde::Serializer>(dimension: &Dimension, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(dimension.name())
}

#[cfg(feature = "serde")]
fn by_display<S: serde::Serializer>(rule: &RuleId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RuleKind;

    #[test]
    fn a_figure_is_shown_in_its_unit_with_three_digits() {
        let rule = RuleId::new(None, RuleKind::System, 2);
        let text = |dimension, limit, observed| {
            DimensionStats { dimension, rule: rule.clone(), limit, observed }.to_string()
        };
        assert_eq!(
            text(Dimension::AvgRt, 0.05, Some(0.062_499_9)),
            "avg_rt: 62.5ms of at most 50ms (loaded/system/2)"
        );
        assert_eq!(
            text(Dimension::Cpu, 0.8, Some(0.876_543)),
            "cpu_of_quota: 0.877 of at most 0.8 (loaded/system/2)"
        );
        assert_eq!(
            text(Dimension::Load, 4.0, None),
            "load: unavailable, so the limit of 4 is inactive (loaded/system/2)"
        );
    }
}
