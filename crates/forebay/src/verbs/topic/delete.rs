//! `forebay topic delete`

use clap::Args;
use forebay_client::TopicFigures;
use forebay_proto::v1;
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
    /// What becomes of its items.
    #[command(flatten)]
    items: removed::Force,
    /// What all changes share.
    #[command(flatten)]
    note: Note,
}

/// A topic that was removed, and the operation that removes its items.
struct Deleted(TopicFigures, Option<String>);

impl Delete {
    /// Removes the settings and the pauses of the topic.
    pub async fn run(self) -> Result<(), Failure> {
        let topic = named(&self.topic)?;
        self.items.confirm(&format!("Topic {}", output::visible(topic)), self.note.dry_run)?;
        let client = self.connection.client().await?;
        let (removed, operation) = client.delete_topic(topic, self.items.force, self.note.into()).await?;
        output::print_one(&Deleted(removed, operation), &self.format)
    }
}

impl One for Deleted {
    fn name(&self) -> String {
        self.0.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let message = v1::DeleteTopicResponse {
            topic: Some(output::topic(&self.0)),
            operation_id: self.1.clone().unwrap_or_default(),
        };
        output::to_json("DeleteTopicResponse", &message)
    }

    fn table(&self, style: &Style) -> Table {
        let own: Vec<_> = self.0.pauses.iter().filter(|pause| !pause.of_namespace).cloned().collect();
        removed::table("TOPIC", &self.0.topic, &self.0.settings, &own, self.1.as_slice(), style)
    }
}
