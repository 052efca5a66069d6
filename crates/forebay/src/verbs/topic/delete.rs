//! `forebay topic delete`

use clap::Args;
use forebay_client::v1::{DeleteTopicRequest, DeleteTopicResponse};
use serde_json::Value;

use super::pause::named;
use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{connection::Connection, note::Note, removed},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay topic delete mail
  forebay topic delete mail --dry-run -o json
  forebay topic delete mail --force --yes

A topic that has items is not deleted: remove them first, with `forebay topic purge` and
`forebay dead-letter delete`, or with it by --force. Pauses and settings go at once, items bit by bit: to keep
consumers from them, purge first.")]
pub struct Delete {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The topic
    topic: String,
    /// Flags for its items.
    #[command(flatten)]
    items: removed::Force,
    /// Flags that all changes share.
    #[command(flatten)]
    note: Note,
}

impl Delete {
    /// Removes the settings and the pauses of the topic.
    pub async fn run(self) -> Result<(), Failure> {
        let topic = named(&self.topic)?;
        self.items.confirm(&format!("Topic {}", output::visible(topic)), self.note.dry_run)?;
        let client = self.connection.client().await?;
        let force = self.items.force;
        let request = DeleteTopicRequest {
            namespace: client.namespace().to_owned(),
            topic: topic.to_owned(),
            force,
            reason: self.note.reason,
            dry_run: self.note.dry_run,
        };
        let deleted = client.ask(request).await?;
        removed::print(&deleted, deleted.topic.is_some(), &format!("topic {topic}"), &self.format)
    }
}

impl One for DeleteTopicResponse {
    fn name(&self) -> String {
        self.topic.as_ref().map(|topic| topic.topic.clone()).unwrap_or_default()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("DeleteTopicResponse", self)
    }

    fn table(&self, style: &Style) -> Table {
        let topic = self.topic.clone().unwrap_or_default();
        let own: Vec<_> = topic.pauses.iter().filter(|pause| !pause.of_namespace).cloned().collect();
        let operations: Vec<_> =
            Some(self.operation_id.clone()).into_iter().filter(|id| !id.is_empty()).collect();
        let settings = topic.settings.unwrap_or_default().into();
        removed::table("TOPIC", &topic.topic, &settings, &own, &operations, style)
    }
}
