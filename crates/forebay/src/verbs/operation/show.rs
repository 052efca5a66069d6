//! Prints one operation.

use std::io::Write as _;

use forebay_client::Operation;

use crate::{
    failure::Failure,
    output::{self, Cell, Format, Output, Table},
};

/// Prints it, with its shards.
pub fn print(operation: &Operation, format: &Format) -> Result<(), Failure> {
    let line = match format.output {
        Output::Json => format!("{:#}", output::to_json("Operation", &output::operation(operation))?),
        Output::Jsonl => output::to_json("Operation", &output::operation(operation))?.to_string(),
        Output::Name => output::visible(&operation.id),
        Output::Table | Output::Wide => {
            let style = format.look.style();
            let mut table = Table::new(["OPERATION", ""]);
            let mut row = |name: String, value: Cell| table.row([name.into(), value]);
            let counts = operation.counts;
            row("id".to_owned(), Cell::from(&operation.id));
            row("kind".to_owned(), output::kind_name(operation.kind).into());
            row("topic".to_owned(), Cell::from(&operation.topic));
            row("filter".to_owned(), Cell::from(&operation.filter));
            row("state".to_owned(), output::state_name(operation.state).into());
            row("matched".to_owned(), counts.matched.into());
            row("changed".to_owned(), counts.changed.into());
            row("skipped".to_owned(), counts.skipped.into());
            row("failed".to_owned(), counts.failed.into());
            row("rate".to_owned(), operation.rate.into());
            row("started".to_owned(), style.optional_time(operation.started_at).into());
            row("ended".to_owned(), style.optional_time(operation.ended_at).into());
            row("by".to_owned(), Cell::from(&operation.started_by));
            row("reason".to_owned(), Cell::from(&operation.reason));
            if format.output == Output::Wide {
                for shard in &operation.shards {
                    let state = match (shard.begun, shard.ended) {
                        (_, true) => "ended",
                        (true, false) => "under way",
                        (false, false) => "not begun",
                    };
                    let counts = shard.counts;
                    let text = format!("{state}, {} changed of {}", counts.changed, counts.matched);
                    row(format!("shard {}", shard.shard), text.into());
                }
            }
            return Ok(table.print(&style)?);
        }
    };
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
