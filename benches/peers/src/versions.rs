//! The versions of the peers, as they are locked.

const LOCK: &str = include_str!("../Cargo.lock");

const PEERS: [&str; 13] = [
    "sentinel-core",
    "sentinel-macros",
    "governor",
    "failsafe",
    "recloser",
    "tower-resilience-circuitbreaker",
    "tower-resilience-ratelimiter",
    "ratelimit",
    "leaky-bucket",
    "metrics",
    "metrics-exporter-prometheus",
    "tracing",
    "tokio",
];

/// Each peer with its version.
pub(crate) fn all() -> Vec<String> {
    let version = |name| locked(LOCK, name).expect("the lock file has what the manifest asks for");
    PEERS.iter().map(|name| format!("{name} {}", version(name))).collect()
}

fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let mut lines =
        lock.lines().skip_while(|line| line.strip_prefix("name = ").is_none_or(|quoted| !is(quoted, name)));
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

fn is(quoted: &str, name: &str) -> bool {
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::{PEERS, all, locked};

    #[test]
    fn a_version_is_that_of_the_crate_of_this_name() {
        let lock = "[[package]]\nname = \"tower-layer\"\nversion = \"0.3.3\"\n\n[[package]]\nname = \"tower\"\nversion = \"0.5.3\"\n";
        assert_eq!([locked(lock, "tower"), locked(lock, "layer")], [Some("0.5.3"), None]);
    }

    #[test]
    fn every_peer_is_locked() {
        assert_eq!(all().len(), PEERS.len());
    }
}
