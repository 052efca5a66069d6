//! `forebay status`: what is wrong, most severe first, and what to look at.

mod findings;
mod flags;
mod picture;

use std::io::{self, Write as _};

use serde_json::{Value, json};

use super::severity::Severity;
use crate::{
    failure::Failure,
    output::{Cell, Column, List, Output, Row},
};
use findings::Finding;
pub use flags::Status;
use picture::Picture;

impl Status {
    /// Looks, and says what is wrong.
    pub async fn run(self) -> Result<(), Failure> {
        let (findings, picture) = match self.connection.client().await {
            Ok(client) => {
                let picture = picture::take(&client, &self).await?;
                (findings::of(&picture), Some(picture))
            }
            Err(failure) if failure.is_unavailable() => (vec![findings::no_answer(failure.text())], None),
            Err(failure) => return Err(failure),
        };
        let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Fine);
        let table = matches!(self.format.output, Output::Table | Output::Wide);
        if table {
            writeln!(io::stdout().lock(), "{}", summary(&findings, picture.as_ref()))?;
        }
        if !table || !findings.is_empty() {
            let mut rest = vec![("severity", Value::from(worst.name()))];
            if let Some(picture) = &picture {
                rest.extend([("nodes", counts(picture.live_nodes())), ("shards", counts(picture.served()))]);
                rest.push(("notSeen", picture.not_seen.clone().into()));
            }
            List { field: "findings", rows: &findings, rest }.print(self.format.output, &self.format.look)?;
        }
        worst.end()
    }
}

/// How many of how many.
fn counts(count: Option<(usize, usize)>) -> Value {
    count.map_or(Value::Null, |(good, all)| json!({"good": good, "all": all}))
}

/// The first line: how much is wrong, and what was looked at.
fn summary(findings: &[Finding], picture: Option<&Picture>) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let mut parts = match (count(Severity::Critical), count(Severity::Warning)) {
        (0, 0) => vec!["nothing is wrong".to_owned()],
        (critical, warnings) => vec![format!("{critical} critical, {warnings} warnings")],
    };
    let Some(picture) = picture else { return parts.remove(0) };
    if let Some((good, all)) = picture.live_nodes() {
        parts.push(format!("{good} of {all} nodes live"));
    }
    if let Some((good, all)) = picture.served() {
        parts.push(format!("{good} of {all} shards served"));
    }
    if !picture.not_seen.is_empty() {
        parts.push(format!("not seen, for lack of rights: {}", picture.not_seen.join(", ")));
    }
    parts.join("; ")
}

impl Row for Finding {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("SEVERITY", |it, _| Cell::toned(it.severity.name(), it.severity.tone())),
        Column::new("WHAT", |it, _| Cell::from(&it.what)),
        Column::new("LOOK AT", |it, _| Cell::from(&it.look)),
    ];

    fn name(&self) -> String {
        self.kind.to_owned()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let Self { severity, kind, what, look } = self;
        Ok(json!({"severity": severity.name(), "kind": kind, "what": what, "look": look}))
    }
}
