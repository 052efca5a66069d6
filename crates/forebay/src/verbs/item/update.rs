//! `forebay item update`

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use forebay_client::{ItemState, ItemUpdate, Schedule, Timestamp};
use forebay_proto::v1;
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, Format, One, Style, Table},
    parse,
    verbs::connection::Connection,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item update 3-1041 --priority -5
  forebay item update 3-1041 --delay 0s --reason 'the customer waits'
  forebay item update 3-1041 --deliver-after 2030-01-31T12:00:00Z --ttl 30d --dry-run")]
#[command(group = clap::ArgGroup::new("value").required(true).multiple(true))]
pub struct Update {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The item's id, as 3-1041
    item: String,
    /// Smaller numbers are delivered first
    #[arg(long, allow_negative_numbers = true, group = "value")]
    priority: Option<i32>,
    /// Deliver the item only after this time, as in 5s or 2h; 0s: now
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "deliver_after", group = "value")]
    delay: Option<Duration>,
    /// Deliver the item only after this point in time, as in 2030-01-31T12:00:00Z
    #[arg(long, value_parser = parse::time, value_name = "TIME", group = "value")]
    deliver_after: Option<Timestamp>,
    /// Replace the metadata
    #[arg(long, value_name = "TEXT", group = "value")]
    metadata: Option<String>,
    /// Remove the item after this time from now, as in 1h
    #[arg(long, value_parser = humantime::parse_duration, group = "value")]
    ttl: Option<Duration>,
    /// Only look whether it can be done
    #[arg(long)]
    dry_run: bool,
    /// Why, for the log of the server
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    reason: String,
}

/// What became of the item.
struct Updated {
    /// Its id.
    item: String,
    /// Where it is now.
    state: ItemState,
}

impl Update {
    /// Changes the item, and prints where it is then.
    pub async fn run(self) -> Result<(), Failure> {
        let delay = self.delay.map(Schedule::After);
        let update = ItemUpdate {
            priority: self.priority,
            schedule: delay.or(self.deliver_after.map(Schedule::At)),
            metadata: self.metadata.map(Bytes::from),
            ttl: self.ttl,
            reason: self.reason,
            dry_run: self.dry_run,
        };
        let state = self.connection.client().await?.update_item(&self.item, update).await?;
        output::print_one(&Updated { item: self.item, state }, &self.format)
    }
}

impl One for Updated {
    fn name(&self) -> String {
        self.item.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let answer = v1::UpdateItemResponse { state: output::item_state(self.state).into() };
        output::to_json("UpdateItemResponse", &answer)
    }

    fn table(&self, _style: &Style) -> Table {
        let mut table = Table::new(["ITEM", "STATE"]);
        table.row([Cell::from(&self.item), show::state(Some(self.state)).into()]);
        table
    }
}
