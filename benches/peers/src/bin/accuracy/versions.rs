//! The versions of the peers, as they are locked.

const LOCK: &str = include_str!("../../../Cargo.lock");
const PEERS: [&str; 5] =
    ["governor", "leaky-bucket", "ratelimit", "sentinel-core", "tower-resilience-ratelimiter"];

/// All of them, in a line.
pub(crate) fn all() -> String {
    let told = PEERS.map(|name| format!("{name} {}", version(LOCK, name).unwrap_or("of unknown version")));
    told.join(", ")
}

fn version<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    after.split_once('"').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_locked_in_a_version() {
        let locked = "[[package]]\nname = \"some\"\nversion = \"1.2.3\"\n";
        assert_eq!((version(locked, "some"), version(locked, "other")), (Some("1.2.3"), None));
        assert!(PEERS.iter().all(|name| version(LOCK, name).is_some()));
    }
}
