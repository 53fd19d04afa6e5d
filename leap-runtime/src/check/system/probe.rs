//! Where the figures of the machine come from: the seam, and what an operating system's files say.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// Gives the figures of the machine, about once a second while a rule on load or CPU stands.
///
/// [`HostProbe`] is the usual one. Yours may know better: what a hypervisor or a scheduler says, or what a test wants.
/// It is called on the thread of an inbound call (or of whoever samples), so it should answer from memory or from a
/// file, not over a network. A panic in it is contained.
///
/// # Examples
///
/// ```
/// use leap_runtime::{SystemProbe, SystemSample};
///
/// /// As busy as the test says.
/// struct Busy(f64);
///
/// impl SystemProbe for Busy {
///     fn sample(&self) -> SystemSample {
///         SystemSample::default().with_cpu_of_quota(self.0)
///     }
/// }
///
/// assert_eq!(Busy(0.95).sample().cpu_of_quota(), Some(0.95));
/// assert_eq!(Busy(0.95).sample().load(), None);
/// ```
pub trait SystemProbe: Send + Sync + 'static {
    /// The figures now. One that is absent makes the rules on it inactive.
    fn sample(&self) -> SystemSample;
}

impl<T: SystemProbe + ?Sized> SystemProbe for Arc<T> {
    fn sample(&self) -> SystemSample {
        (**self).sample()
    }
}

/// What a probe has found. Figures that are not numbers, negative, or beyond all sense (a load over a million, a share
/// over 2) are ignored and counted by whoever takes the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemSample {
    load: Option<f64>,
    cpu_of_quota: Option<f64>,
    quota: Option<f64>,
}

impl SystemSample {
    /// Adds the load average of the machine.
    #[must_use]
    pub const fn with_load(mut self, load: f64) -> Self {
        self.load = Some(load);
        self
    }

    /// Adds the processor time used, as a share (0 to 1) of what this process and those beside it may use together.
    #[must_use]
    pub const fn with_cpu_of_quota(mut self, share: f64) -> Self {
        self.cpu_of_quota = Some(share);
        self
    }

    /// Adds what that is a share of, in processors.
    #[must_use]
    pub const fn with_quota(mut self, processors: f64) -> Self {
        self.quota = Some(processors);
        self
    }

    /// The load average of the machine.
    pub const fn load(&self) -> Option<f64> {
        self.load
    }

    /// The processor time used, as a share of the quota.
    pub const fn cpu_of_quota(&self) -> Option<f64> {
        self.cpu_of_quota
    }

    /// The quota, in processors; none where the share is of the whole machine.
    pub const fn quota(&self) -> Option<f64> {
        self.quota
    }
}

/// The shortest span that a share of processor time is told from: the kernel counts in ticks of up to 10 ms.
const SPAN_MIN: Duration = Duration::from_millis(100);

/// Reads `/proc` and the control groups of this process, where there are any.
///
/// - *load*: the first figure of `/proc/loadavg`.
/// - *cpu*: the processor time used since the sample before, as a share of the quota. The quota is `cpu.max` (cgroup v2)
///   or `cpu.cfs_quota_us` (v1) of this process's group or of any group above it; the fullest of them counts, with the
///   processors it may run on (`Cpus_allowed_list`) as a further bound. Without a quota the share is that of the
///   processors: of this group or of the whole machine (`/proc/stat`), whichever is higher.
///
/// What counts is which files can be read, never what a group is called. Where none can, there is no figure.
#[derive(Debug)]
pub struct HostProbe {
    root: PathBuf,
    start: Instant,
    last: Mutex<Option<Taken>>,
}

/// The reading that the next share is told from, and the share that was told with it.
#[derive(Debug)]
struct Taken {
    at: Duration,
    reading: Reading,
    share: Option<f64>,
}

impl HostProbe {
    /// A probe of this machine. It reads nothing before it is asked; the first sample has no share of processor time.
    pub fn new() -> Self {
        Self::under("/")
    }

    /// A probe that reads below `root` instead of `/`.
    pub fn under(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), start: Instant::now(), last: Mutex::new(None) }
    }

    /// The sample at `at`, a moment since some start.
    fn sample_at(&self, at: Duration) -> SystemSample {
        let load = first_number(&self.root.join("proc/loadavg"));
        // Held while files are read: one sample after another, because each is told from the one before.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = last.as_ref().filter(|taken| at.saturating_sub(taken.at) < SPAN_MIN);
        let (share, quota) = if let Some(taken) = recent {
            (taken.share, taken.reading.quota())
        } else {
            let reading = Reading::of(&self.root);
            let share = last
                .as_ref()
                .and_then(|before| reading.share_since(&before.reading, at.saturating_sub(before.at)));
            let quota = reading.quota();
            *last = Some(Taken { at, reading, share });
            (share, quota)
        };
        SystemSample { load, cpu_of_quota: share, quota }
    }
}

impl Default for HostProbe {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemProbe for HostProbe {
    fn sample(&self) -> SystemSample {
        self.sample_at(self.start.elapsed())
    }
}

/// What the files said at one moment.
#[derive(Debug, Default)]
struct Reading {
    /// The groups that hold this process, each followed by those above it.
    groups: Vec<Group>,
    host: Option<Host>,
    /// The processors that this process may run on.
    processors: Option<f64>,
}

/// A control group: what it may use, and what it has used.
#[derive(Debug)]
struct Group {
    path: PathBuf,
    /// In processors.
    quota: Option<f64>,
    used: Option<Duration>,
    /// Whether it is the one of its hierarchy that is nearest to this process.
    is_own: bool,
}

/// What the processors of the machine have done since it started, in ticks.
#[derive(Clone, Copy, Debug)]
struct Host {
    busy: u64,
    all: u64,
}

/// A tree of control groups, and how its files are read.
struct Hierarchy {
    /// Where it may be mounted.
    mounts: &'static [&'static str],
    /// The controller by which `/proc/self/cgroup` lists it; none for v2.
    controller: &'static str,
    quota: fn(&Path) -> Option<f64>,
    used: fn(&Path) -> Option<Duration>,
}

/// v2, and v1's two controllers, which may be mounted together or apart. All that are there count: on a hybrid machine the
/// quota is in v1 while v2 counts the time too.
const HIERARCHIES: [Hierarchy; 3] = [
    Hierarchy {
        mounts: &["sys/fs/cgroup/cpuacct", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpuacct,cpu"],
        controller: "cpuacct",
        quota: |_| None,
        used: usage_of_v1,
    },
    Hierarchy {
        mounts: &["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpuacct,cpu"],
        controller: "cpu",
        quota: quota_of_v1,
        used: |_| None,
    },
    Hierarchy {
        mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
        controller: "",
        quota: quota_of_v2,
        used: usage_of_v2,
    },
];

impl Reading {
    fn of(root: &Path) -> Self {
        let membership = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let stat = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        let status = fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
        Self {
            groups: HIERARCHIES.iter().flat_map(|hierarchy| hierarchy.groups(root, &membership)).collect(),
            host: host(&stat),
            processors: allowed(&status).or_else(|| present(&stat)),
        }
    }

    /// The least that any group of this process may use, if what they use is known too.
    fn quota(&self) -> Option<f64> {
        self.groups.iter().any(|group| group.is_own && group.used.is_some()).then_some(())?;
        self.groups.iter().filter_map(|group| self.bound(group)).min_by(f64::total_cmp)
    }

    /// What a group with a quota may use.
    fn bound(&self, group: &Group) -> Option<f64> {
        group.quota.map(|quota| self.processors.map_or(quota, |processors| quota.min(processors)))
    }

    /// The share of the quota that was used in `span`, since `before`.
    fn share_since(&self, before: &Self, span: Duration) -> Option<f64> {
        let spent = |group: &Group| {
            let earlier = before.groups.iter().find(|earlier| earlier.path == group.path)?;
            // A counter that ran backwards belongs to another group of that name.
            Some(group.used?.checked_sub(earlier.used?)?.div_duration_f64(span))
        };
        let own = self.groups.iter().filter(|group| group.is_own).find_map(spent);
        let of_quotas = self.groups.iter().filter_map(|group| {
            // A group above counts its other members too. What it has used is not known where controllers are mounted
            // apart; then it is at least what we have.
            let used = [spent(group), own].into_iter().flatten().reduce(f64::max)?;
            Some(used / self.bound(group)?)
        });
        of_quotas.reduce(f64::max).or_else(|| {
            let processors =
                self.processors.or_else(|| available_parallelism().ok().and_then(|n| count(n.get())));
            let of_processors = own.zip(processors).map(|(used, processors)| used / processors);
            let of_host = self.host.zip(before.host).and_then(|(now, before)| now.share_since(before));
            [of_processors, of_host].into_iter().flatten().reduce(f64::max)
        })
    }
}

impl Host {
    fn share_since(self, before: Self) -> Option<f64> {
        let (busy, all) = (self.busy.checked_sub(before.busy)?, self.all.checked_sub(before.all)?);
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        (all > 0).then(|| busy as f64 / all as f64)
    }
}

impl Hierarchy {
    /// The group of this process and those above it, as far as they can be seen.
    fn groups(&self, root: &Path, membership: &str) -> Vec<Group> {
        let path = membership.lines().find_map(|line| self.path_in(line)).unwrap_or("");
        let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != "..").collect();
        let mounts = self.mounts.iter().map(|mount| root.join(mount));
        mounts
            .map(|mount| self.groups_under(&mount, &names))
            .find(|groups| !groups.is_empty())
            .unwrap_or_default()
    }

    /// What is mounted may be the whole tree, or the part of it that a container sees, which begins somewhere along the
    /// path: the longest end of the path that is there leads to the group.
    fn groups_under(&self, mount: &Path, names: &[&str]) -> Vec<Group> {
        let ends = (0..=names.len()).map(|skipped| mount.join(names[skipped..].join("/")));
        let Some(own) = ends.into_iter().find(|dir| dir.is_dir()) else { return vec![] };
        let dirs = own.ancestors().take_while(|dir| dir.starts_with(mount));
        let mut groups: Vec<_> = dirs
            .map(|dir| Group {
                path: dir.to_path_buf(),
                quota: (self.quota)(dir),
                used: (self.used)(dir),
                is_own: false,
            })
            .filter(|group| group.quota.is_some() || group.used.is_some())
            .collect();
        if let Some(own) = groups.first_mut() {
            own.is_own = true;
        }
        groups
    }

    /// The path in a line of `/proc/self/cgroup` (`id:controllers:path`), if it is this hierarchy's.
    fn path_in<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|controller| controller == self.controller).then_some(path)
    }
}

/// `cpu.max`: `50000 100000`, or `max 100000` where there is no quota.
fn quota_of_v2(group: &Path) -> Option<f64> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let mut words = text.split_whitespace();
    ratio(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

/// `cpu.cfs_quota_us` is −1 where there is no quota.
fn quota_of_v1(group: &Path) -> Option<f64> {
    let of = |file| first_number(&group.join(file));
    ratio(of("cpu.cfs_quota_us")?, of("cpu.cfs_period_us")?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    Some(quota / period).filter(|processors| processors.is_finite() && *processors > 0.0)
}

fn usage_of_v2(group: &Path) -> Option<Duration> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let micros = text.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    micros.trim().parse().ok().map(Duration::from_micros)
}

fn usage_of_v1(group: &Path) -> Option<Duration> {
    let text = fs::read_to_string(group.join("cpuacct.usage")).ok()?;
    text.trim().parse().ok().map(Duration::from_nanos)
}

fn first_number(file: &Path) -> Option<f64> {
    fs::read_to_string(file).ok()?.split_whitespace().next()?.parse().ok()
}

/// `/proc/stat`: `cpu  user nice system idle iowait irq softirq steal …`; what follows is in `user` and `nice` already.
fn host(stat: &str) -> Option<Host> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let (idle, iowait) = (*ticks.get(3)?, ticks.get(4).copied().unwrap_or(0));
    let all = ticks.iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    Some(Host { busy: all - idle - iowait, all })
}

/// The processors that `/proc/stat` lists.
fn present(stat: &str) -> Option<f64> {
    let is_processor = |line: &&str| line.strip_prefix("cpu").is_some_and(|rest| !rest.starts_with(' '));
    count(stat.lines().filter(is_processor).count())
}

/// The processors in `/proc/self/status`: `Cpus_allowed_list: 0-3,8`.
fn allowed(status: &str) -> Option<f64> {
    let ranges = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let in_range = |range: &str| -> Option<usize> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        (last.checked_sub(first)?).checked_add(1)
    };
    let mut counts = ranges.trim().split(',').map(in_range);
    count(counts.try_fold(0_usize, |sum, processors| sum.checked_add(processors?))?)
}

fn count(processors: usize) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a number of processors")]
    (processors > 0).then_some(processors as f64)
}

#[cfg(test)]
#[cfg(not(any(leap_loom, leap_shuttle)))]
mod tests;
