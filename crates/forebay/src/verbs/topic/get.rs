//! `forebay topic get`

use forebay_client::v1::{GetTopicRequest, GetTopicResponse};
use serde_json::Value;

use super::flags::Get;
use crate::{
    failure::Failure,
    output::{self, Cell, One, Style, Table},
    verbs::{flow, pauses::side_name, settings},
};

/// Shows a topic.
pub async fn run(flags: &Get) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let (namespace, topic) = (client.namespace().to_owned(), flags.topic.clone());
    let report = client.ask(GetTopicRequest { namespace, topic }).await?;
    output::note_incomplete(&flags.format.look, &report.incomplete_shards);
    output::print_one(&report, &flags.format)
}

impl One for GetTopicResponse {
    fn name(&self) -> String {
        self.topic.as_ref().map(|topic| topic.topic.clone()).unwrap_or_default()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetTopicResponse", self)
    }

    fn table(&self, style: &Style) -> Table {
        let topic = self.topic.clone().unwrap_or_default();
        let mut table = Table::new(["TOPIC", "", ""]);
        let mut row = |name: &str, value: Cell| {
            table.row([name.into(), value, "".into()]);
        };
        row("name", Cell::from(&topic.topic));
        row("ready", topic.ready_count.into());
        row("leased", topic.leased_count.into());
        row("scheduled", topic.scheduled_count.into());
        row("dead", topic.dead_count.into());
        row("oldest ready", style.optional_time(topic.oldest_ready_at).into());
        row("next due", style.optional_time(topic.next_due_at).into());
        row("waiting calls", topic.waiting_calls.into());
        flow::add_rows(&mut table, topic.counts.as_ref(), topic.rates.as_ref(), style);
        for (name, p50, p99) in
            [("wait", topic.wait_p50, topic.wait_p99), ("handling", topic.handling_p50, topic.handling_p99)]
        {
            let half = |_| format!("half of them {}", output::optional_span(p50));
            let half = p50.map(half).unwrap_or_default();
            table.row([format!("{name} p99").into(), output::optional_span(p99).into(), half.into()]);
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
        let [own, effective] =
            [topic.settings, self.effective_settings].map(|it| it.unwrap_or_default().into());
        settings::add_rows(&mut table, &own, &effective);
        table.row(["settings version".into(), topic.settings_version.into(), "".into()]);
        for count in &self.priorities {
            let since = format!("ready since {}", style.optional_time(count.oldest_ready_at));
            table.row([
                format!("priority {}", count.priority).into(),
                count.ready_count.into(),
                since.into(),
            ]);
        }
        if self.priorities_cut {
            let more = "ready items that were not counted by priority";
            table.row(["others".into(), "".into(), more.into()]);
        }
        table
    }
}
