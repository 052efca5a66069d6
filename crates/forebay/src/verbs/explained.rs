//! What `forebay topic explain` and `forebay item explain` print.

use forebay_client::{Blocker, Explained};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
};

/// A row.
struct Reason(Blocker);

/// Prints why items are not delivered.
pub fn print(explained: Explained, format: &Format) -> Result<(), Failure> {
    let Explained { blockers, incomplete_shards } = explained;
    output::note_incomplete(&format.look, &incomplete_shards);
    let rows: Vec<Reason> = blockers.into_iter().map(Reason).collect();
    let rest = vec![("incompleteShards", incomplete_shards.into())];
    List { field: "blockers", rows: &rows, rest }.print(format.output, &format.look)
}

fn number<T: ToString>(number: Option<T>) -> Cell {
    Cell::from(number.map_or_else(|| "-".to_owned(), |number| number.to_string()))
}

impl Row for Reason {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CODE", |it, _| Cell::from(&it.0.code)),
        Column::wide("SHARD", |it, _| number(it.0.shard)),
        Column::wide("ITEMS", |it, _| number(it.0.count)),
        Column::wide("SINCE", |it, style| style.optional_time(it.0.since).into()),
        Column::wide("UNTIL", |it, style| style.optional_time(it.0.until).into()),
        Column::new("WHY", |it, _| Cell::from(&it.0.sentence)),
    ];

    fn name(&self) -> String {
        self.0.code.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Blocker", &output::blocker(&self.0))
    }
}
