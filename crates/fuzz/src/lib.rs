//! Targets that the fuzzer feeds with random bytes. A target takes any bytes and panics where a property does
//! not hold. A test runs each over its corpus; `cargo xtask fuzz` runs it under libFuzzer.

mod filters;
mod receipts;

/// A function that takes any bytes, and panics where a property does not hold.
pub type Target = fn(&[u8]);

/// Every target, by its name. Its corpus is the folder of that name in `corpora`.
pub const TARGETS: &[(&str, Target)] = &[
    ("configuration", forebay_node::fuzzing::configuration),
    ("filters", filters::run),
    ("json_bodies", forebay_node::fuzzing::json_bodies),
    ("page_tokens", forebay_node::fuzzing::page_tokens),
    ("packed_columns", forebay_store::fuzzing::packed_columns),
    ("peer_messages", forebay_peers::fuzzing::peer_messages),
    ("receipts", receipts::run),
];

/// The target of a name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}
