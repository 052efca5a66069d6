//! Output of `forebay topic explain` and `forebay item explain`.

use forebay_client::v1::{Blocker, BlockerCode};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
};

/// Prints why items are not delivered.
pub fn print(blockers: &[Blocker], incomplete_shards: Vec<u32>, format: &Format) -> Result<(), Failure> {
    output::note_incomplete(&format.look, &incomplete_shards);
    let rest = vec![("incompleteShards", incomplete_shards.into())];
    List { field: "blockers", rows: blockers, rest }.print(format.output, &format.look)
}

fn number<T: ToString>(number: Option<T>) -> Cell {
    Cell::from(number.map_or_else(|| "-".to_owned(), |number| number.to_string()))
}

impl Row for Blocker {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CODE", |it, _| it.name().into()),
        Column::wide("SHARD", |it, _| number(it.shard)),
        Column::wide("ITEMS", |it, _| number(it.count)),
        Column::wide("SINCE", |it, style| style.optional_time(it.since).into()),
        Column::wide("UNTIL", |it, style| style.optional_time(it.until).into()),
        Column::new("WHY", |it, _| Cell::from(&it.sentence)),
    ];

    /// Its code. Empty: this program does not know it.
    fn name(&self) -> String {
        match self.code() {
            BlockerCode::Unspecified => String::new(),
            code => code.as_str_name().trim_start_matches("BLOCKER_CODE_").to_owned(),
        }
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Blocker", self)
    }
}
