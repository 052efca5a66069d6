//! The page about the configuration.

use std::fmt::Write as _;

use super::{file, keys::Key};

/// Ahead of the sections.
const HEAD: &str = "\
# Configuration

The keys of a node's file, as `forebay config keys` prints them. Samples:
[deploy/config](../deploy/config). `forebay check-config --config forebay.toml` lists every mistake in a file.

Flags override the environment. The environment overrides the file. Units are part of key names (`drain_ms`).
Unknown keys are rejected, and so are unknown variables that begin with `FOREBAY_`. Variables take lists with
commas. `forebay serve` has flags for `grpc`, `http`, `advertise` and `allow_not_durable`. There is no flag
for secrets.
";

/// `docs/CONFIGURATION.md`: every key with its variable, its default and its meaning.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for section in file::sections() {
        let about: Vec<_> = section.about.lines().map(str::trim).collect();
        let _ = write!(page, "\n## `{}`\n\n{}\n\n", section.heading, about.join("\n"));
        page.push_str("| key | variable | default | meaning |\n| --- | --- | --- | --- |\n");
        for key in &section.keys {
            let variable = section.variable(key).map(|name| format!("`{name}`")).unwrap_or_default();
            let (meaning, default) = meaning_and_default(key);
            let _ = writeln!(page, "| `{}` | {variable} | {default} | {meaning} |", key.name);
        }
    }
    page
}

/// The parts of a key's comment. The last sentence may tell a default that is no fixed value.
fn meaning_and_default(key: &Key) -> (&str, &str) {
    let about = key.about.trim();
    match about.split_once(" By default ") {
        Some((meaning, default)) => (meaning, default.trim_end_matches('.')),
        None => (about, &key.default),
    }
}
