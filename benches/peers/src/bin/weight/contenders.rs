//! What is weighed: a small program for each, which guards one function.

/// A package with one program.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// What it does with the function.
    pub(crate) does: &'static str,
    /// The lines under `[dependencies]`; `{leap-runtime}` is the folder of ours.
    pub(crate) dependencies: &'static str,
    pub(crate) program: &'static str,
}

/// The same function, guarded by nothing: its program is what the others' are measured from.
pub(crate) const PLAIN: Contender = Contender {
    name: "plain",
    does: "calls it",
    dependencies: "",
    program: include_str!("programs/plain.rs"),
};

/// Those that weigh something.
pub(crate) const ALL: [Contender; 6] = [
    Contender {
        name: "leap",
        does: "limit, slow-call breaker and all statistics, by attribute",
        dependencies: "leap-runtime = { path = '{leap-runtime}' }\n",
        program: include_str!("programs/leap.rs"),
    },
    Contender {
        name: "sentinel-core",
        does: "limit and slow-call breaker",
        dependencies: "sentinel-core = { version = \"0.1.3\", features = [\"full\"] }\n",
        program: include_str!("programs/sentinel_core.rs"),
    },
    Contender {
        name: "governor",
        does: "limit only",
        dependencies: "governor = \"0.10\"\n",
        program: include_str!("programs/governor.rs"),
    },
    Contender {
        name: "governor + failsafe + metrics",
        does: "limit, breaker on errors, a counter and a histogram; no recorder",
        dependencies: "failsafe = \"1.3\"\ngovernor = \"0.10\"\nmetrics = \"0.24\"\n",
        program: include_str!("programs/glue.rs"),
    },
    Contender {
        name: "tower-resilience",
        does: "limit and breaker, with the tower and tokio that it is used in",
        dependencies: concat!(
            "tokio = { version = \"1\", default-features = false, features = [\"rt\", \"time\"] }\n",
            "tower = { version = \"0.5\", default-features = false, features = [\"util\"] }\n",
            "tower-resilience-circuitbreaker = \"0.14\"\n",
            "tower-resilience-ratelimiter = \"0.14\"\n",
        ),
        program: include_str!("programs/tower_resilience.rs"),
    },
    Contender {
        name: "tower and tokio alone",
        does: "calls it; what the users of the one above have anyway",
        dependencies: concat!(
            "tokio = { version = \"1\", default-features = false, features = [\"rt\", \"time\"] }\n",
            "tower = { version = \"0.5\", default-features = false, features = [\"util\"] }\n",
        ),
        program: include_str!("programs/tower_alone.rs"),
    },
];
