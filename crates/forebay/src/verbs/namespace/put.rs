//! `forebay namespace put`

use std::time::Duration;

use clap::Args;
use forebay_client::{
    Reason,
    v1::{GetNamespaceRequest, NamespaceSettings, PutNamespaceRequest, PutNamespaceResponse},
};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{
        connection::Connection,
        note::Note,
        settings::{self, FlagValue, SettingFlags},
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
    "default_lease", "default_max_attempts", "retry_delay", "dead_letter_retention", "weight", "dedupe_window"
]))]
pub struct Put {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The settings.
    #[command(flatten)]
    settings: SettingFlags,
    /// How long dedupe keys and request ids are remembered, as in 2m; `inherit`: not set here
    #[arg(long, value_name = "TIME", value_parser = settings::span)]
    dedupe_window: Option<FlagValue<Duration>>,
    /// Only if the settings have this version, as `namespace get` shows it; 0: there are none
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,
    /// Flags that all changes share.
    #[command(flatten)]
    note: Note,
}

/// The settings of a namespace after a change.
struct Settings {
    /// The namespace.
    namespace: String,
    /// The settings.
    report: PutNamespaceResponse,
}

impl Put {
    /// Sets what counts for the items of the namespace.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let namespace = client.namespace().to_owned();
        let there = match client.ask(GetNamespaceRequest { namespace: namespace.clone() }).await {
            Ok(report) => report.namespace.unwrap_or_default(),
            Err(error) if error.reason() == Some(Reason::NamespaceNotFound) => Default::default(),
            Err(error) => return Err(error.into()),
        };
        settings::check_version(self.if_version, there.settings_version)?;
        let own = there.settings.unwrap_or_default();
        let dedupe_window = settings::merged_span(self.dedupe_window, own.dedupe_window);
        let request = PutNamespaceRequest {
            namespace,
            settings: Some(NamespaceSettings { dedupe_window, ..self.settings.merge(&own) }),
            version: there.settings_version,
            reason: self.note.reason,
            dry_run: self.note.dry_run,
        };
        let report = client.ask(request).await?;
        output::print_one(&Settings { namespace: self.connection.servers.namespace()?, report }, &self.format)
    }
}

impl One for Settings {
    fn name(&self) -> String {
        self.namespace.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("PutNamespaceResponse", &self.report)
    }

    fn table(&self, _: &Style) -> Table {
        let PutNamespaceResponse { settings, effective_settings, version } = &self.report;
        let [own, effective] = [settings, effective_settings].map(|it| it.unwrap_or_default());
        settings::table("NAMESPACE", &self.namespace, &own, &effective, *version)
    }
}
