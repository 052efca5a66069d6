//! `forebay item update`

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use forebay_client::{
    ItemState, ItemUpdate, OperationKind, OperationQuery, OperationUpdate, Schedule, Timestamp,
};
use forebay_proto::v1;
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, One, Style, Table},
    verbs::bulk::Bulk,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item update 3-1041 --priority -5
  forebay item update 3-1041 --delay 0s --reason 'the customer waits'
  forebay item update 3-1041 --deliver-after 2030-01-31T12:00:00Z --ttl 30d --dry-run
  forebay item update --topic mail --filter 'priority > 5' --priority 0 --yes")]
#[command(group = clap::ArgGroup::new("value").required(true).multiple(true))]
pub struct Update {
    /// The item's id, as 3-1041
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    item: Option<String>,
    /// Change the items of this topic that wait and pass the filter, by an operation
    #[arg(long)]
    topic: Option<String>,
    /// Smaller numbers are delivered first
    #[arg(long, allow_negative_numbers = true, group = "value")]
    priority: Option<i32>,
    /// Deliver the item only after this time, as in 5s or 2h; 0s: now
    #[arg(long, value_parser = humantime::parse_duration, conflicts_with = "deliver_after", group = "value")]
    delay: Option<Duration>,
    /// Deliver the item only after this point in time, as in 2030-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", group = "value")]
    deliver_after: Option<Timestamp>,
    /// Replace the metadata
    #[arg(long, value_name = "TEXT", group = "value")]
    metadata: Option<String>,
    /// Remove the item after this time from now, as in 1h
    #[arg(long, value_parser = humantime::parse_duration, group = "value")]
    ttl: Option<Duration>,
    /// What all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

/// What became of the item.
struct Updated {
    /// Its id.
    item: String,
    /// Where it is now.
    state: ItemState,
}

impl Update {
    /// Changes the item, and prints where it is then, or many items.
    pub async fn run(self) -> Result<(), Failure> {
        let schedule = self.delay.map(Schedule::After).or(self.deliver_after.map(Schedule::At));
        let (priority, metadata, ttl) = (self.priority, self.metadata.map(Bytes::from), self.ttl);
        let Some(item) = self.item else {
            let update = OperationUpdate { priority, schedule, metadata, ttl, metadata_bytes: None };
            let query = OperationQuery::new(OperationKind::Update, self.topic.unwrap_or_default());
            return self.bulk.run(OperationQuery { update: Some(update), ..query }, "updated").await;
        };
        self.bulk.check_named()?;
        let Bulk { reason, dry_run, connection, format, .. } = self.bulk;
        let update = ItemUpdate { priority, schedule, metadata, ttl, reason, dry_run };
        let state = connection.client().await?.update_item(&item, update).await?;
        output::print_one(&Updated { item, state }, &format)
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
