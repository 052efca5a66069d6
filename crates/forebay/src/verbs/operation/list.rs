//! `forebay operation list`

use forebay_client::v1::{ListOperationsRequest, Operation};
use serde_json::Value;

use super::{flags, show};
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row},
    verbs::pages,
};

/// Lists operations.
pub async fn run(flags: &flags::List) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut incomplete: Vec<u32> = Vec::new();
    let pages = pages::collect(flags.limit, async |page_size, page_token| {
        let namespace = client.namespace().to_owned();
        let page = client.ask(ListOperationsRequest { namespace, page_size, page_token }).await?;
        incomplete.extend(page.incomplete_shards);
        Ok((page.operations, page.next_page_token))
    });
    let (operations, next) = pages.await?;
    incomplete.sort_unstable();
    incomplete.dedup();
    output::note_incomplete(&flags.format.look, &incomplete);
    let rest = vec![("nextPageToken", next.into()), ("incompleteShards", incomplete.into())];
    List { field: "operations", rows: &operations, rest }.print(flags.format.output, &flags.format.look)
}

impl Row for Operation {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("OPERATION", |it, _| Cell::from(&it.id)),
        Column::new("KIND", |it, _| show::kind(it).into()),
        Column::new("TOPIC", |it, _| Cell::from(&it.topic)),
        Column::new("STATE", |it, _| show::state(it).into()),
        Column::new("MATCHED", |it, _| it.figures.unwrap_or_default().matched.into()),
        Column::new("CHANGED", |it, _| it.figures.unwrap_or_default().changed.into()),
        Column::wide("SKIPPED", |it, _| it.figures.unwrap_or_default().skipped.into()),
        Column::wide("FAILED", |it, _| it.figures.unwrap_or_default().failed.into()),
        Column::new("STARTED", |it, style| style.optional_time(it.started_at).into()),
        Column::wide("BY", |it, _| Cell::from(&it.started_by)),
        Column::wide("FILTER", |it, _| Cell::from(&it.filter)),
        Column::wide("REASON", |it, _| Cell::from(&it.reason)),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Operation", self)
    }
}
