//! `forebay item cancel`

use std::io::{self, IsTerminal as _};

use clap::Args;
use forebay_client::{
    Error,
    v1::{CancelItemResult, CancelItemsRequest, OperationKind},
};
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row},
    verbs::{
        bulk::{Bulk, confirm},
        follow, settled,
    },
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item cancel 3-1041 --dry-run
  forebay item cancel 3-1041 3-1042 --reason 'sent twice'
  forebay item cancel 3-1041 --yes -o json
  forebay item cancel --topic mail --filter 'age > 7d' --reason 'too old'")]
pub struct Cancel {
    /// The items' ids, as 3-1041; at most 1,000
    #[arg(required_unless_present = "topic", conflicts_with = "topic", value_name = "ITEM")]
    items: Vec<String>,
    /// Remove the items of this topic that pass the filter, dead letters too, by an operation
    #[arg(long)]
    topic: Option<String>,
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Cancel {
    /// Removes items, once whoever sits at the terminal has said so.
    pub async fn run(self) -> Result<(), Failure> {
        if let Some(topic) = self.topic {
            return self.bulk.run(follow::of_topic(OperationKind::Cancel, topic), "removed").await;
        }
        let Self { items, bulk, .. } = self;
        bulk.check_named()?;
        let Bulk { dry_run, yes, reason, connection, format, .. } = bulk;
        if !dry_run && !yes {
            if !io::stdin().is_terminal() {
                let message = "this removes items, and there is no terminal to ask: add --yes, or --dry-run";
                return Err(Failure::usage(message));
            }
            let count = items.len();
            confirm(&format!("{count} item{} will be removed.", if count == 1 { "" } else { "s" }))?;
        }
        let client = connection.client().await?;
        let namespace = client.namespace().to_owned();
        let request = CancelItemsRequest { namespace, item_ids: items, reason, dry_run };
        let results = client.ask(request).await?.results;
        List { field: "results", rows: &results, rest: Vec::new() }.print(format.output, &format.look)?;
        settled::first_failure(results.iter().map(result).collect())
    }
}

/// The outcome for one item.
fn result(of: &CancelItemResult) -> Result<(), Error> {
    of.error.as_ref().map_or(Ok(()), |error| Err(Error::of_member(error)))
}

impl Row for CancelItemResult {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("ITEM", |it, _| Cell::from(&it.item_id)),
        Column::new("OUTCOME", |it, style| {
            settled::outcome(&result(it), style, |(), _| format!("was {}", show::state(it.state())))
        }),
    ];

    fn name(&self) -> String {
        if self.error.is_none() { self.item_id.clone() } else { String::new() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("CancelItemResult", self)
    }
}
