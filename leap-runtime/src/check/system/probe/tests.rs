use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A machine made of files in a folder of its own, which goes with it.
struct Machine {
    root: PathBuf,
    probe: HostProbe,
}

impl Machine {
    fn new() -> Self {
        static N: AtomicU32 = AtomicU32::new(0);
        let nth = N.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("leap-probe-{}-{nth}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        Self { probe: HostProbe::under(&root), root }
    }

    fn with(self, file: &str, text: &str) -> Self {
        self.write(file, text);
        self
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The share of a second in which these files change from the first text to the second, with the quota.
    fn cpu_after(&self, changes: &[(&str, &str, &str)]) -> (Option<f64>, Option<f64>) {
        for (file, before, _) in changes {
            self.write(file, before);
        }
        assert_eq!(
            self.probe.sample_at(Duration::from_secs(10)).cpu_of_quota(),
            None,
            "nothing to tell it from"
        );
        for (file, _, after) in changes {
            self.write(file, after);
        }
        let sample = self.probe.sample_at(Duration::from_secs(11));
        (sample.cpu_of_quota().map(|share| (share * 1e6).round() / 1e6), sample.quota())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const STATUS_64: (&str, &str) = ("proc/self/status", "Name:\tleap\nCpus_allowed_list:\t0-63\n");

#[test]
fn half_a_processor_of_64_is_nine_tenths_used_by_450_ms_in_a_second() {
    let machine = Machine::new()
        .with(STATUS_64.0, STATUS_64.1)
        .with("proc/self/cgroup", "0::/\n")
        .with("sys/fs/cgroup/cpu.max", "50000 100000\n");
    let stat = "sys/fs/cgroup/cpu.stat";
    let seen = machine.cpu_after(&[(
        stat,
        "usage_usec 1000000\nuser_usec 1\n",
        "usage_usec 1450000\nuser_usec 1\n",
    )]);
    assert_eq!(seen, (Some(0.9), Some(0.5)));
}

#[test]
fn a_fraction_of_a_processor_is_not_rounded() {
    let machine = Machine::new()
        .with(STATUS_64.0, STATUS_64.1)
        .with("proc/self/cgroup", "0::/\n")
        .with("sys/fs/cgroup/cpu.max", "125000 100000\n");
    let seen = machine.cpu_after(&[("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 1000000\n")]);
    assert_eq!(seen, (Some(0.8), Some(1.25)));
}

#[test]
fn without_a_quota_the_processors_are_the_quota() {
    for (mount, usage) in [("cpu,cpuacct", "cpu,cpuacct"), ("cpu", "cpuacct")] {
        let machine = Machine::new()
            .with("proc/self/status", "Cpus_allowed_list:\t0-1,4,7\n")
            .with("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n0::/\n")
            .with(&format!("sys/fs/cgroup/{mount}/cpu.cfs_quota_us"), "-1\n")
            .with(&format!("sys/fs/cgroup/{mount}/cpu.cfs_period_us"), "100000\n");
        let file = format!("sys/fs/cgroup/{usage}/cpuacct.usage");
        assert_eq!(machine.cpu_after(&[(&file, "7\n", "2000000007\n")]), (Some(0.5), None), "{mount}");
    }
}

#[test]
fn a_quota_of_v1_counts_as_one_of_v2() {
    let machine = Machine::new()
        .with(STATUS_64.0, STATUS_64.1)
        .with("proc/self/cgroup", "5:cpu,cpuacct:/kubepods/pod1/abc\n")
        .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n")
        .with("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    let usage = "sys/fs/cgroup/cpu,cpuacct/cpuacct.usage";
    assert_eq!(machine.cpu_after(&[(usage, "0", "1500000000")]), (Some(0.75), Some(2.0)));
}

#[test]
fn a_smaller_quota_of_a_group_above_counts_and_so_do_its_other_members() {
    let machine = || {
        Machine::new()
            .with(STATUS_64.0, STATUS_64.1)
            .with("proc/self/cgroup", "0::/kubepods/pod1/abc\n")
            .with("sys/fs/cgroup/kubepods/pod1/abc/cpu.max", "200000 100000\n")
            .with("sys/fs/cgroup/kubepods/pod1/cpu.max", "100000 100000\n")
            .with("sys/fs/cgroup/kubepods/cpu.max", "max 100000\n")
    };
    let own = ("sys/fs/cgroup/kubepods/pod1/abc/cpu.stat", "usage_usec 0\n", "usage_usec 500000\n");
    assert_eq!(machine().cpu_after(&[own]), (Some(0.5), Some(1.0)), "what the group above used is not told");
    let above = ("sys/fs/cgroup/kubepods/pod1/cpu.stat", "usage_usec 5\n", "usage_usec 900005\n");
    assert_eq!(machine().cpu_after(&[own, above]), (Some(0.9), Some(1.0)));
}

#[test]
fn fewer_processors_than_the_quota_are_the_quota() {
    let machine = Machine::new()
        .with("proc/self/status", "Cpus_allowed_list:\t3\n")
        .with("sys/fs/cgroup/cpu.max", "400000 100000\n");
    let seen = machine.cpu_after(&[("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 700000\n")]);
    assert_eq!(seen, (Some(0.7), Some(1.0)));
}

/// Whatever the path is called, and whether the group's folder is where the path says (no cgroup namespace) or is the
/// root of what is mounted.
#[test]
fn files_decide_and_names_do_not() {
    let paths = [
        "0::/\n",
        "0::/kubepods/burstable/pod1/abc\n",
        "0::/system.slice/containerd.service/kubepods-burstable.slice:cri-containerd:abc\n",
        "0::/../../other\n",
        "12:pids:/docker/abc\n0::/docker/abc\n",
        "nonsense",
        "",
    ];
    for path in paths {
        let machine =
            Machine::new().with("sys/fs/cgroup/cpu.max", "100000 100000\n").with("proc/self/cgroup", path);
        let usage = ("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 250000\n");
        assert_eq!(machine.cpu_after(&[usage]), (Some(0.25), Some(1.0)), "{path:?}");
    }
    let below = "sys/fs/cgroup/kubepods/burstable/pod1/abc";
    let machine = Machine::new()
        .with("proc/self/cgroup", paths[1])
        .with("sys/fs/cgroup/cpu.stat", "usage_usec 1\n")
        .with(&format!("{below}/cpu.max"), "100000 100000\n");
    let usage = (&*format!("{below}/cpu.stat"), "usage_usec 0\n", "usage_usec 250000\n");
    assert_eq!(machine.cpu_after(&[usage]), (Some(0.25), Some(1.0)), "no namespace");
    let machine = Machine::new()
        .with("proc/self/cgroup", paths[1])
        .with("sys/fs/cgroup/pod1/abc/cpu.max", "100000 100000\n");
    let usage = ("sys/fs/cgroup/pod1/abc/cpu.stat", "usage_usec 0\n", "usage_usec 250000\n");
    assert_eq!(machine.cpu_after(&[usage]), (Some(0.25), Some(1.0)), "mounted from the middle of the path");
}

#[test]
fn a_hybrid_machine_counts_by_v1() {
    let machine = Machine::new()
        .with("proc/self/cgroup", "2:cpuacct:/\n1:cpu:/\n0::/\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n")
        .with("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    let seen = machine.cpu_after(&[
        ("sys/fs/cgroup/cpuacct/cpuacct.usage", "0", "400000000"),
        ("sys/fs/cgroup/unified/cpu.stat", "usage_usec 0\n", "usage_usec 900000\n"),
    ]);
    assert_eq!(seen, (Some(0.4), Some(1.0)));
}

#[test]
fn without_groups_the_machines_own_figures_are_taken() {
    let stat = "proc/stat";
    let machine = Machine::new().with("proc/loadavg", "3.25 2.00 1.00 1/234 5678\n");
    // 200 ticks, of which 100 idle and 50 waiting; guest time is in user time already.
    let before = "cpu  100 0 50 1000 10 0 0 0 7 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
    let after = "cpu  140 0 60 1100 60 0 0 0 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
    assert_eq!(machine.cpu_after(&[(stat, before, after)]), (Some(0.25), None));
    assert_eq!(machine.probe.sample_at(Duration::from_secs(12)).load(), Some(3.25));
}

#[test]
fn a_busy_machine_shows_where_a_group_without_a_quota_is_idle() {
    let machine = Machine::new().with("proc/self/status", "Cpus_allowed_list:\t0-3\n");
    let seen = machine.cpu_after(&[
        ("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 400000\n"),
        ("proc/stat", "cpu  0 0 0 0 0\n", "cpu  90 0 0 10 0\n"),
    ]);
    assert_eq!(seen, (Some(0.9), None));
}

#[test]
fn a_machine_without_such_files_has_no_figures() {
    let machine = Machine::new();
    for second in 0..3 {
        assert_eq!(machine.probe.sample_at(Duration::from_secs(second)), SystemSample::default());
    }
}

#[test]
fn files_that_make_no_sense_are_no_figures() {
    let nonsense = [
        "",
        "\n",
        "max",
        "a b",
        "-5 100000",
        "0 0",
        "1e400 1",
        "NaN NaN",
        "99999999999999999999999999",
        "\0",
    ];
    for text in nonsense {
        let machine = Machine::new()
            .with("proc/loadavg", "")
            .with("proc/stat", text)
            .with("proc/self/status", &format!("Cpus_allowed_list:\t{text}\n"))
            .with("sys/fs/cgroup/cpu.max", text);
        let usage = format!("usage_usec {text}\n");
        assert_eq!(
            machine.cpu_after(&[("sys/fs/cgroup/cpu.stat", &usage, &usage)]),
            (None, None),
            "{text:?}"
        );
    }
}

#[test]
fn a_counter_that_runs_backwards_gives_no_share() {
    let machine = Machine::new().with("sys/fs/cgroup/cpu.max", "100000 100000\n");
    let usage = ("sys/fs/cgroup/cpu.stat", "usage_usec 900\n", "usage_usec 0\n");
    assert_eq!(machine.cpu_after(&[usage]), (None, Some(1.0)));
    machine.write(usage.0, "usage_usec 500000\n");
    assert_eq!(machine.probe.sample_at(Duration::from_secs(12)).cpu_of_quota(), Some(0.5));
}

#[test]
fn a_sample_too_soon_repeats_the_share_and_the_next_one_spans_both() {
    let machine = Machine::new().with("sys/fs/cgroup/cpu.max", "100000 100000\n");
    let usage = ("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 500000\n");
    assert_eq!(machine.cpu_after(&[usage]).0, Some(0.5));
    machine.write(usage.0, "usage_usec 520000\n");
    assert_eq!(machine.probe.sample_at(Duration::from_millis(11_099)).cpu_of_quota(), Some(0.5));
    assert_eq!(machine.probe.sample_at(Duration::from_millis(11_100)).cpu_of_quota(), Some(0.2));
}

#[test]
fn a_quota_that_is_changed_is_seen_at_once() {
    let machine = Machine::new().with("sys/fs/cgroup/cpu.max", "100000 100000\n");
    let usage = ("sys/fs/cgroup/cpu.stat", "usage_usec 0\n", "usage_usec 500000\n");
    assert_eq!(machine.cpu_after(&[usage]), (Some(0.5), Some(1.0)));
    machine.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
    machine.write(usage.0, "usage_usec 1000000\n");
    let sample = machine.probe.sample_at(Duration::from_secs(12));
    assert_eq!((sample.cpu_of_quota(), sample.quota()), (Some(0.25), Some(2.0)));
}

#[test]
fn this_machine_is_read_without_a_panic() {
    let probe = HostProbe::new();
    probe.sample();
    let sample = probe.sample_at(Duration::from_secs(3_600));
    assert!(sample.cpu_of_quota().is_none_or(|share| share >= 0.0), "{sample:?}");
}
