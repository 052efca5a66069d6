//! Lists the tokens of a file.

use std::path::Path;

use forebay_access::Record;
use forebay_types::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    output::{Cell, Column, Format, List, Row, Style, Tone},
};

/// A token, as of now.
struct TokenListEntry {
    /// The token.
    record: Record,
    /// `valid`, `revoked` or `ended`.
    state: &'static str,
}

/// Prints them.
pub fn list(path: &Path, format: &Format) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    let tokens = forebay_access::parse(&text).map_err(Failure::from_display)?;
    let now = SystemClock::default().wall();
    let state = |token: &Record| match (token.revoked, token.ends) {
        (true, _) => "revoked",
        (_, Some(ends)) if ends <= now => "ended",
        _ => "valid",
    };
    let listed: Vec<_> =
        tokens.into_iter().map(|record| TokenListEntry { state: state(&record), record }).collect();
    List::all("tokens", &listed).print(format.output, &format.look)
}

impl TokenListEntry {
    fn grants(&self) -> Vec<String> {
        self.record.grants.iter().map(ToString::to_string).collect()
    }
}

impl Row for TokenListEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("ID", |token, _| Cell::from(&token.record.id)),
        Column::new("STATE", |token, _| match token.state {
            "valid" => Cell::toned(token.state, Tone::Good),
            state => Cell::toned(state, Tone::Warn),
        }),
        Column::new("ENDS", |token, style| style.optional_time(token.record.ends).into()),
        Column::wide("OLD SECRET ENDS", |token, style| style.optional_time(token.record.overlap_ends).into()),
        Column::new("NAME", |token, _| Cell::from(&token.record.name)),
        Column::new("GRANTS", |token, _| token.grants().join(" ").into()),
    ];

    fn name(&self) -> String {
        self.record.id.to_string()
    }

    fn json(&self) -> anyhow::Result<Value> {
        Ok(json!({
            "id": self.record.id.as_str(),
            "name": self.record.name,
            "state": self.state,
            "grants": self.grants(),
            "endsAt": self.record.ends.map(|at| Style::iso().time(at)),
            "overlapEndsAt": self.record.overlap_ends.map(|at| Style::iso().time(at)),
        }))
    }
}
