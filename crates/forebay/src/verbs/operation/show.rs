//! Prints one operation, with its shards.

use forebay_client::v1::{Operation, OperationShard, OperationUpdate, operation_update::Schedule};
use forebay_proto::time::{from_duration, from_timestamp};
use serde_json::Value;

use crate::output::{self, Cell, One, Style, Table};

impl One for Operation {
    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Operation", self)
    }

    fn table(&self, style: &Style) -> Table {
        let mut table = Table::new(["OPERATION", ""]);
        let mut row = |name: String, value: Cell| table.row([name.into(), value]);
        let counts = self.figures.unwrap_or_default();
        row("id".to_owned(), Cell::from(&self.id));
        row("kind".to_owned(), kind(self).into());
        row("topic".to_owned(), Cell::from(&self.topic));
        row("filter".to_owned(), or_none(&self.filter));
        if let Some(update) = &self.update {
            row("update".to_owned(), of_update(update, style).into());
        }
        if let Some(most) = self.max_redrives {
            row("max redrives".to_owned(), most.into());
        }
        row("state".to_owned(), state(self).into());
        if let Some(error) = &self.error {
            row("error".to_owned(), Cell::from(&error.message));
        }
        row("scanned".to_owned(), format!("{} of about {}", counts.scanned, self.estimated_total).into());
        row("matched".to_owned(), counts.matched.into());
        row("changed".to_owned(), counts.changed.into());
        row("skipped".to_owned(), counts.skipped.into());
        row("failed".to_owned(), counts.failed.into());
        row("rate".to_owned(), self.rate_per_second.into());
        row("started".to_owned(), style.optional_time(self.started_at).into());
        match (self.ended_at, self.estimated_end) {
            (None, Some(end)) => row("ends about".to_owned(), style.optional_time(Some(end)).into()),
            (ended, _) => row("ended".to_owned(), style.optional_time(ended).into()),
        }
        row("by".to_owned(), or_none(&self.started_by));
        row("reason".to_owned(), or_none(&self.reason));
        // Shards that have nothing of the topic are of no interest.
        let is_told = |shard: &&OperationShard| {
            shard.figures.unwrap_or_default().matched > 0
                || !shard.ended
                || shard.silent
                || shard.error.is_some()
        };
        for shard in self.shards.iter().filter(is_told) {
            row(format!("shard {}", shard.shard), of_shard(shard).into());
        }
        table
    }
}

/// The name of what it does.
pub fn kind(operation: &Operation) -> String {
    output::word(operation.kind().as_str_name(), "OPERATION_KIND_")
}

/// The name of how far it is.
pub fn state(operation: &Operation) -> String {
    output::word(operation.state().as_str_name(), "OPERATION_STATE_")
}

/// A text that may not have been given.
fn or_none(text: &str) -> Cell {
    Cell::from(if text.is_empty() { "-" } else { text })
}

/// Describes the values that items get.
fn of_update(update: &OperationUpdate, style: &Style) -> String {
    let span = |span| humantime::format_duration(from_duration(span)).to_string();
    let values = [
        update.priority.map(|priority| format!("priority {priority}")),
        update.schedule.map(|schedule| match schedule {
            Schedule::Delay(delay) => format!("delay {}", span(delay)),
            Schedule::DeliverAfter(at) => format!("deliver after {}", style.time(from_timestamp(at))),
        }),
        update.metadata_bytes.map(|bytes| format!("metadata of {bytes} bytes")),
        update.ttl.map(|ttl| format!("ttl {}", span(ttl))),
    ];
    values.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn of_shard(shard: &OperationShard) -> String {
    let state = match (shard.begun, shard.ended, &shard.error) {
        _ if shard.silent => return "does not answer".to_owned(),
        (_, true, Some(_)) => "failed",
        (_, true, None) => "ended",
        (true, false, Some(_)) => "waits",
        (true, false, None) => "under way",
        (false, false, _) => "not begun",
    };
    let figures = shard.figures.unwrap_or_default();
    format!("{state}, {} changed of {}", figures.changed, figures.matched)
}
