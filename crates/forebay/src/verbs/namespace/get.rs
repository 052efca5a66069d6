//! `forebay namespace get`

use clap::Args;
use forebay_client::v1::{GetNamespaceRequest, GetNamespaceResponse};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Format, One, Style, Table},
    verbs::{connection::Connection, flow, pauses::side_name, settings},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace get --namespace shop
  forebay namespace get --namespace shop -o json")]
pub struct Get {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
}

impl Get {
    /// Shows the namespace.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let namespace = client.namespace().to_owned();
        let report = client.ask(GetNamespaceRequest { namespace }).await?;
        output::note_incomplete(&self.format.look, &report.incomplete_shards);
        output::note_uncounted(&self.format.look, &report.uncounted_shards);
        output::print_one(&report, &self.format)
    }
}

impl One for GetNamespaceResponse {
    fn name(&self) -> String {
        self.namespace.as_ref().map(|it| it.namespace.clone()).unwrap_or_default()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetNamespaceResponse", self)
    }

    fn table(&self, style: &Style) -> Table {
        let it = self.namespace.clone().unwrap_or_default();
        let mut table = Table::new(["NAMESPACE", "", ""]);
        let mut row = |name: &str, value: Cell| {
            table.row([name.into(), value, "".into()]);
        };
        row("name", Cell::from(&it.namespace));
        row("topics", it.topic_count.into());
        row("ready", it.ready_count.into());
        row("leased", it.leased_count.into());
        row("scheduled", it.scheduled_count.into());
        row("dead", it.dead_count.into());
        row("oldest ready", style.optional_time(it.oldest_ready_at).into());
        row("waiting calls", it.waiting_calls.into());
        flow::add_rows(&mut table, it.counts.as_ref(), it.rates.as_ref(), style);
        if it.topics_cut {
            let more = "there are more than were looked at: all of these figures are too small";
            table.row(["more topics".into(), "".into(), more.into()]);
        }
        for pause in &it.pauses {
            let mut more = format!("since {}", style.optional_time(pause.since));
            if pause.until.is_some() {
                more += &format!(", ends {}", style.optional_time(pause.until));
            }
            if !pause.by.is_empty() {
                more += &format!(", by {}", pause.by);
            }
            if !pause.note.is_empty() {
                more += &format!(": {}", pause.note);
            }
            table.row(["paused".into(), side_name(pause).into(), more.into()]);
        }
        let own = it.settings.unwrap_or_default();
        settings::add_rows(&mut table, &own, &self.effective_settings.unwrap_or_default());
        table.row(["settings version".into(), it.settings_version.into(), "".into()]);
        table
    }
}
