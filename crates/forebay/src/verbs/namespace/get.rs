//! `forebay namespace get`

use clap::Args;
use forebay_client::NamespaceReport;
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
        let report = self.connection.client().await?.get_namespace().await?;
        output::note_incomplete(&self.format.look, &report.incomplete_shards);
        output::note_uncounted(&self.format.look, &report.uncounted_shards);
        output::print_one(&report, &self.format)
    }
}

impl One for NamespaceReport {
    fn name(&self) -> String {
        self.figures.namespace.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("GetNamespaceResponse", &output::namespace_report(self))
    }

    fn table(&self, style: &Style) -> Table {
        let it = &self.figures;
        let mut table = Table::new(["NAMESPACE", "", ""]);
        let mut row = |name: &str, value: Cell| {
            table.row([name.into(), value, "".into()]);
        };
        row("name", Cell::from(&it.namespace));
        row("topics", it.topics.into());
        row("ready", it.ready.into());
        row("leased", it.leased.into());
        row("scheduled", it.scheduled.into());
        row("dead", it.dead.into());
        row("oldest ready", style.optional_time(it.oldest_ready_at).into());
        row("waiting calls", it.waiting.into());
        flow::add_rows(&mut table, it.counts, it.rates, style);
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
        settings::add_rows(&mut table, &it.settings, &self.effective);
        table.row(["settings version".into(), it.settings_version.into(), "".into()]);
        table
    }
}
