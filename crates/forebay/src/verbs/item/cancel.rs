//! `forebay item cancel`

use std::io::{self, IsTerminal as _};

use clap::Args;
use forebay_client::{CancelQuery, Error, ItemState};
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row},
    verbs::{bulk, connection::Connection, settled},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item cancel 3-1041 --dry-run
  forebay item cancel 3-1041 3-1042 --reason 'sent twice'
  forebay item cancel 3-1041 --yes -o json")]
pub struct Cancel {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The items' ids, as 3-1041; at most 1,000
    #[arg(required = true, value_name = "ITEM")]
    items: Vec<String>,
    /// Only look where they are
    #[arg(long)]
    dry_run: bool,
    /// Why, for the log of the server
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
    /// Do it without a question
    #[arg(long)]
    yes: bool,
}

/// What became of one item.
struct Cancelled {
    /// Its id.
    item: String,
    /// The state in which it was.
    result: Result<ItemState, Error>,
}

impl Cancel {
    /// Removes the items, once whoever sits at the terminal has said so.
    pub async fn run(self) -> Result<(), Failure> {
        if !self.dry_run && !self.yes {
            if !io::stdin().is_terminal() {
                let message = "this removes items, and there is no terminal to ask: add --yes, or --dry-run";
                return Err(Failure::usage(message));
            }
            let count = self.items.len();
            bulk::confirm(&format!("{count} item{} will be removed.", if count == 1 { "" } else { "s" }))?;
        }
        let (item_ids, reason, dry_run) = (self.items.clone(), self.reason, self.dry_run);
        let query = CancelQuery { item_ids, reason, dry_run };
        let results = self.connection.client().await?.cancel_items(query).await?;
        let each = self.items.into_iter().zip(results.clone());
        let rows: Vec<_> = each.map(|(item, result)| Cancelled { item, result }).collect();
        List { field: "results", rows: &rows, rest: Vec::new() }
            .print(self.format.output, &self.format.look)?;
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
