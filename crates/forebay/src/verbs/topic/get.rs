//! `forebay topic get`

use forebay_client::TopicReport;
use serde_json::Value;

use super::flags::Get;
use crate::{
    failure::Failure,
    output::{self, Cell, One, Style, Table},
    verbs::pauses::side_name,
};

/// Shows a topic.
pub async fn run(flags: &Get) -> Result<(), Failure> {
    let report = flags.connection.client().await?.topic(&flags.topic).await?;
    output::note_incomplete(&flags.format.look, &report.incomplete_shards);
    output::print_one(&report, &flags.format)
}

impl One for TopicReport {
    fn name(&self) -> String {
        self.figures.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetTopicResponse", &output::topic_report(self))
    }

    fn table(&self, style: &Style) -> Table {
        let topic = &self.figures;
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
        for pause in &topic.pauses {
            let (since, until) = (style.optional_time(pause.since), style.optional_time(pause.until));
            let whose = if pause.of_namespace { "the namespace is paused" } else { "paused" };
            let mut more = format!("{whose} since {since}");
            if pause.until.is_some() {
                more += &format!(", ends {until}");
            }
            if !pause.by.is_empty() {
                more += &format!(", by {}", pause.by);
            }
            if !pause.note.is_empty() {
                more += &format!(": {}", pause.note);
            }
            row("paused", side_name(pause).into(), more);
        }
        for count in &self.priorities {
            let since = format!("ready since {}", style.optional_time(count.oldest_ready_at));
            row(&format!("priority {}", count.priority), count.ready.into(), since);
        }
        if self.priorities_cut {
            row("others", "".into(), "ready items that were not counted by priority".to_owned());
        }
        table
    }
}
