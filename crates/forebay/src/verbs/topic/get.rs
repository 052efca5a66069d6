//! `forebay topic get`

use forebay_client::TopicReport;
use serde_json::Value;

use super::flags::Get;
use crate::{
    failure::Failure,
    output::{self, Cell, One, Style, Table},
    verbs::{flow, pauses::side_name, settings},
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
        let mut row = |name: &str, value: Cell| {
            table.row([name.into(), value, "".into()]);
        };
        row("name", Cell::from(&topic.topic));
        row("ready", topic.ready.into());
        row("leased", topic.leased.into());
        row("scheduled", topic.scheduled.into());
        row("dead", topic.dead.into());
        row("oldest ready", style.optional_time(topic.oldest_ready_at).into());
        row("next due", style.optional_time(topic.next_due_at).into());
        row("waiting calls", topic.waiting.into());
        flow::add_rows(&mut table, topic.counts, topic.rates, style);
        for (name, took) in [("wait", topic.wait), ("handling", topic.handling)] {
            let p50 = took.p50.map(|p50| format!("half of them {}", output::span(p50))).unwrap_or_default();
            table.row([format!("{name} p99").into(), flow::length(took.p99).into(), p50.into()]);
        }
        table.row(["last delivery".into(), style.optional_time(topic.last_delivery_at).into(), "".into()]);
        table.row(["last ack".into(), style.optional_time(topic.last_ack_at).into(), "".into()]);
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
            table.row(["paused".into(), side_name(pause).into(), more.into()]);
        }
        settings::add_rows(&mut table, &topic.settings, &self.effective);
        table.row(["settings version".into(), topic.settings_version.into(), "".into()]);
        for count in &self.priorities {
            let since = format!("ready since {}", style.optional_time(count.oldest_ready_at));
            table.row([format!("priority {}", count.priority).into(), count.ready.into(), since.into()]);
        }
        if self.priorities_cut {
            let more = "ready items that were not counted by priority";
            table.row(["others".into(), "".into(), more.into()]);
        }
        table
    }
}
