//! `forebay item update`

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use forebay_client::{
    Timestamp,
    v1::{
        OperationKind, OperationUpdate, StartOperationRequest, UpdateItemRequest, UpdateItemResponse,
        operation_update, update_item_request,
    },
};
use forebay_proto::time::{to_duration, to_timestamp};
use serde_json::Value;

use super::show;
use crate::{
    failure::Failure,
    output::{self, Cell, One, Style, Table},
    verbs::{bulk::Bulk, follow},
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
    /// Flags that all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

/// Result of the item's update.
struct UpdateOutcome {
    /// Its id.
    item: String,
    /// The answer of the node.
    answer: UpdateItemResponse,
}

impl Update {
    /// Changes the item, and prints where it is then, or many items.
    pub async fn run(self) -> Result<(), Failure> {
        let (priority, metadata) = (self.priority, self.metadata.map(Bytes::from));
        let (delay, deliver_after) = (self.delay.map(to_duration), self.deliver_after.map(to_timestamp));
        let ttl = self.ttl.map(to_duration);
        let Some(item) = self.item else {
            use operation_update::Schedule;
            let schedule = delay.map(Schedule::Delay).or(deliver_after.map(Schedule::DeliverAfter));
            let update = OperationUpdate { priority, schedule, metadata, ttl, metadata_bytes: None };
            let request = follow::of_topic(OperationKind::Update, self.topic.unwrap_or_default());
            let request = StartOperationRequest { update: Some(update), ..request };
            return self.bulk.run(request, "updated").await;
        };
        self.bulk.check_named()?;
        let Bulk { reason, dry_run, connection, format, .. } = self.bulk;
        use update_item_request::Schedule;
        let client = connection.client().await?;
        let request = UpdateItemRequest {
            namespace: client.namespace().to_owned(),
            item_id: item.clone(),
            priority,
            schedule: delay.map(Schedule::Delay).or(deliver_after.map(Schedule::DeliverAfter)),
            metadata,
            ttl,
            reason,
            dry_run,
        };
        let answer = client.ask(request).await?;
        output::print_one(&UpdateOutcome { item, answer }, &format)
    }
}

impl One for UpdateOutcome {
    fn name(&self) -> String {
        self.item.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("UpdateItemResponse", &self.answer)
    }

    fn table(&self, _style: &Style) -> Table {
        let mut table = Table::new(["ITEM", "STATE"]);
        table.row([Cell::from(&self.item), show::state(self.answer.state()).into()]);
        table
    }
}
