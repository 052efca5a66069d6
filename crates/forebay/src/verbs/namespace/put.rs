//! `forebay namespace put`

use std::time::Duration;

use clap::Args;
use forebay_client::{Reason, SettingsReport, TopicSettings};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{
        connection::Connection,
        note::Note,
        settings::{self, Given, SettingFlags},
    },
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace put --namespace shop --default-max-attempts 5 --retry-delay 10s
  forebay namespace put --namespace shop --dedupe-window 2m --reason 'fewer keys'
  forebay namespace put --namespace shop --retry-delay inherit

What no flag names stays as it is.")]
#[command(group = clap::ArgGroup::new("any").required(true).multiple(true).args([
    "default_lease", "default_max_attempts", "retry_delay", "dead_letter_retention", "dedupe_window"
]))]
pub struct Put {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// What is to be set.
    #[command(flatten)]
    settings: SettingFlags,
    /// How long dedupe keys and request ids are remembered, as in 2m; `inherit`: not set here
    #[arg(long, value_name = "TIME", value_parser = settings::span)]
    dedupe_window: Option<Given<Duration>>,
    /// Only if the settings have this version, as `namespace get` shows it; 0: there are none
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,
    /// What all changes share.
    #[command(flatten)]
    note: Note,
}

/// The settings of a namespace after a change.
struct Settings {
    /// The namespace.
    namespace: String,
    /// The settings.
    report: SettingsReport,
}

impl Put {
    /// Sets what counts for the items of the namespace.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let (there, version) = match client.get_namespace().await {
            Ok(report) => (report.figures.settings, report.figures.settings_version),
            Err(error) if error.reason() == Some(Reason::NamespaceNotFound) => Default::default(),
            Err(error) => return Err(error.into()),
        };
        let dedupe_window = settings::merged(self.dedupe_window, there.dedupe_window);
        let wanted = TopicSettings { dedupe_window, ..self.settings.merge(there) };
        settings::check_version(self.if_version, version)?;
        let report = client.put_namespace(wanted, version, self.note.into()).await?;
        output::print_one(&Settings { namespace: self.connection.servers.namespace()?, report }, &self.format)
    }
}

impl One for Settings {
    fn name(&self) -> String {
        self.namespace.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("PutNamespaceResponse", &output::put_namespace(&self.report))
    }

    fn table(&self, _: &Style) -> Table {
        settings::table("NAMESPACE", &self.namespace, &self.report)
    }
}
