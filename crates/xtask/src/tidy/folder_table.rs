//! The table of the engine's folders: which of the modules at the top of `crates/engine/src` may import from
//! which. It is data alone; `folder_edges.rs` holds the tree against it.
//!
//! A module is a folder or a file, by its name. `a::b` allows only the part `b` of `a`. Every module may
//! import from itself and from the leaves. A module without a row is a finding.

/// A module in each row, and what it may import from.
pub type Rows = &'static [(&'static str, &'static [&'static str])];

/// The table.
pub struct Table {
    /// A module, and from which others it may import.
    pub rows: Rows,
    /// Modules from which all may import, and from which other leaves each of them may.
    pub leaves: Rows,
    /// Modules whose parts must not import from one another, with the exceptions: a part, and from which
    /// others it may. What such a module's `mod.rs` holds is for all of its parts.
    pub apart: &'static [(&'static str, Rows)],
}

/// The engine's.
pub const ENGINE: Table = Table {
    rows: &[
        ("looks", &["engine", "messages", "api"]),
        ("engine", &["event_loop", "core", "io", "messages", "api"]),
        (
            "event_loop",
            &[
                "ownership",
                "commit",
                "calls",
                "dispatch",
                "core",
                "io",
                "messages",
                "routing",
                "shard",
                "api",
            ],
        ),
        ("ownership", &["commit", "calls", "claim", "core", "messages", "shard", "io::reads", "api"]),
        ("commit", &["calls", "dispatch", "core", "messages", "shard", "api"]),
        ("calls", &["dispatch", "core", "routing", "shard", "messages", "api", "io::reads"]),
        // Never `calls`.
        ("dispatch", &["core", "shard", "messages", "api", "io::reads"]),
        ("core", &["claim", "io", "messages", "routing", "shard", "api"]),
        ("io", &["claim", "messages", "shard::work", "shard::image", "api"]),
        ("messages", &["shard::work", "shard::image", "api"]),
        ("routing", &["shard::work"]),
        ("shard", &["claim", "api"]),
        ("claim", &["api"]),
        ("api", &[]),
    ],
    leaves: &[
        ("clock", &["index", "planted"]),
        ("index", &[]),
        ("invariant", &["planted"]),
        ("planted", &[]),
        ("striped", &[]),
    ],
    apart: &[
        (
            "calls",
            &[
                ("enqueue", &["dedupe"]),
                ("ack", &["settle"]),
                ("nack", &["settle"]),
                ("extend_lease", &["settle"]),
            ],
        ),
        (
            "shard",
            &[
                ("batch", &["upkeep", "contents", "intake", "tenure", "commit", "work"]),
                ("loss", &["contents", "commit", "work"]),
                ("check", &["contents", "commit", "work"]),
                ("status", &["contents"]),
                ("image", &["upkeep", "contents"]),
                ("upkeep", &["contents", "commit", "work"]),
                ("contents", &["commit", "work"]),
                ("intake", &["commit", "work"]),
                ("tenure", &["commit"]),
                ("commit", &["work"]),
            ],
        ),
    ],
};
