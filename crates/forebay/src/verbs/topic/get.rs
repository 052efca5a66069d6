//! `forebay topic get`

use std::io::Write as _;

use super::flags::Get;
use crate::{
    failure::Failure,
    output::{self, Cell, Output, Table},
};

/// Shows a topic.
pub async fn run(flags: &Get) -> Result<(), Failure> {
    let report = flags.connection.client().await?.topic(&flags.topic).await?;
    output::note_incomplete(&flags.format.look, &report.incomplete_shards);
    let line = match flags.format.output {
        Output::Json => format!("{:#}", output::to_json("GetTopicResponse", &output::topic_report(&report))?),
        Output::Jsonl => output::to_json("GetTopicResponse", &output::topic_report(&report))?.to_string(),
        Output::Name => output::visible(&report.figures.topic),
        Output::Table | Output::Wide => {
            let (topic, style) = (&report.figures, flags.format.look.style());
            let mut table = Table::new(["TOPIC", "", ""]);
            let mut row = |name: &str, value: Cell, more: String| {
                table.row([name.into(), value, more.into()]);
            };
            row("name", Cell::from(&topic.topic), String::new());
            row("ready", topic.ready.into(), String::new());
            row("leased", topic.leased.into(), String::new());
            row("scheduled", topic.scheduled.into(), String::new());
            row("dead", topic.dead.into(), String::new());
            row("oldest ready", style.optional_time(topic.oldest_ready_at).into(), String::new());
            row("next due", style.optional_time(topic.next_due_at).into(), String::new());
            row("waiting calls", topic.waiting.into(), String::new());
            for count in &report.priorities {
                let since = format!("ready since {}", style.optional_time(count.oldest_ready_at));
                row(&format!("priority {}", count.priority), count.ready.into(), since);
            }
            if report.priorities_cut {
                row("others", "".into(), "ready items that were not counted by priority".to_owned());
            }
            return Ok(table.print(&style)?);
        }
    };
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
