//! `forebay item cancel`

use std::io::{self, IsTerminal as _};

use clap::Args;
use forebay_client::{CancelQuery, Error, ItemState, OperationKind, OperationQuery};
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row},
    verbs::{
        bulk::{Bulk, confirm},
        settled,
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
    /// What all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

/// What became of one item.
struct Cancelled {
    /// Its id.
    item: String,
    /// The state in which it was.
    result: Result<ItemState, Error>,
}

impl Cancel {
    /// Removes items, once whoever sits at the terminal has said so.
    pub async fn run(self) -> Result<(), Failure> {
        if let Some(topic) = self.topic {
            return self.bulk.run(OperationQuery::new(OperationKind::Cancel, topic), "removed").await;
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
        let query = CancelQuery { item_ids: items.clone(), reason, dry_run };
        let results = connection.client().await?.cancel_items(query).await?;
        let each = items.into_iter().zip(results.clone());
        let rows: Vec<_> = each.map(|(item, result)| Cancelled { item, result }).collect();
        List { field: "results", rows: &rows, rest: Vec::new() }.print(format.output, &format.look)?;
        settled::first_failure(results)
    }
}

impl Row for Cancelled {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("ITEM", |row, _| Cell::from(&row.item)),
        Column::new("OUTCOME", |row, style| {
            settled::outcome(&row.result, style, |was, _| format!("was {}", show::state(Some(*was))))
        }),
    ];

    fn name(&self) -> String {
        if self.result.is_ok() { self.item.clone() } else { String::new() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("CancelItemResult", &output::cancelled(&self.item, &self.result))
    }
}
