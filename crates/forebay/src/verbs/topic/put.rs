//! `forebay topic put`

use clap::Args;
use forebay_client::{
    Reason,
    v1::{GetTopicRequest, PutTopicRequest, PutTopicResponse},
};
use serde_json::Value;

use super::pause::named;
use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{
        connection::Connection,
        note::Note,
        settings::{self, SettingFlags},
    },
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic put mail --default-lease 2m --retry-delay 10s
  forebay topic put mail --default-max-attempts 5 --dead-letter-retention 30d --reason 'as agreed'
  forebay topic put mail --retry-delay inherit
  forebay topic put calls/customer-17 --weight 5
  forebay topic put 'calls/*' --default-lease 5m
  forebay topic put mail --default-lease 5m --dry-run -o json

What no flag names stays as it is.")]
#[command(group = clap::ArgGroup::new("any").required(true).multiple(true)
    .args(["default_lease", "default_max_attempts", "retry_delay", "dead_letter_retention", "weight"]))]
pub struct Put {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The topic; it need not have items. With * at its end: all that begin so
    topic: String,
    /// The settings.
    #[command(flatten)]
    settings: SettingFlags,
    /// Only if the settings have this version, as `topic get` shows it; 0: there are none
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,
    /// Flags that all changes share.
    #[command(flatten)]
    note: Note,
}

/// The settings of a topic after a change.
struct Settings {
    /// The topic.
    topic: String,
    /// The settings.
    report: PutTopicResponse,
}

impl Put {
    /// Sets what counts for the items of the topic.
    pub async fn run(self) -> Result<(), Failure> {
        let topic = named(&self.topic)?;
        let client = self.connection.client().await?;
        let namespace = client.namespace().to_owned();
        let asked =
            client.ask(GetTopicRequest { namespace: namespace.clone(), topic: topic.to_owned() }).await;
        let there = match asked {
            Ok(report) => report.topic.unwrap_or_default(),
            Err(error) if error.reason() == Some(Reason::TopicNotFound) => Default::default(),
            Err(error) => return Err(error.into()),
        };
        settings::check_version(self.if_version, there.settings_version)?;
        let wanted = self.settings.merge(&there.settings.unwrap_or_default().into());
        let request = PutTopicRequest {
            namespace,
            topic: topic.to_owned(),
            settings: Some(wanted.for_topic()),
            version: there.settings_version,
            reason: self.note.reason,
            dry_run: self.note.dry_run,
        };
        let report = client.ask(request).await?;
        output::print_one(&Settings { topic: topic.to_owned(), report }, &self.format)
    }
}

impl One for Settings {
    fn name(&self) -> String {
        self.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("PutTopicResponse", &self.report)
    }

    fn table(&self, _: &Style) -> Table {
        let PutTopicResponse { settings, effective_settings, version } = &self.report;
        let [own, effective] = [settings, effective_settings].map(|it| it.unwrap_or_default().into());
        settings::table("TOPIC", &self.topic, &own, &effective, *version)
    }
}
