//! `forebay namespace delete`

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use forebay_client::{
    Client,
    v1::{DeleteNamespaceRequest, DeleteNamespaceResponse},
};
use serde_json::Value;
use tokio::time::sleep;

use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{connection::Connection, note::Note, removed},
};

/// How often the next topics are begun with, while others are being emptied.
const REPEAT_EVERY: Duration = Duration::from_millis(500);

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace delete --namespace shop --dry-run
  forebay namespace delete --namespace shop --reason 'closed'
  forebay namespace delete --namespace shop --force --yes

A namespace that has items is not deleted: remove them first, topic by topic, with `forebay topic purge` and
`forebay dead-letter delete`, or with it by --force. It empties 100 topics at a time, and goes on until it has
begun with all of them. Pauses and settings go then, items bit by bit: to keep consumers from them, purge
first.")]
pub struct Delete {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// Flags for its items.
    #[command(flatten)]
    items: removed::Force,
    /// Flags that all changes share.
    #[command(flatten)]
    note: Note,
}

impl Delete {
    /// Removes the settings and the pauses of the namespace.
    pub async fn run(self) -> Result<(), Failure> {
        let namespace = self.connection.servers.namespace()?;
        self.items.confirm(&format!("Namespace {}", output::visible(&namespace)), self.note.dry_run)?;
        let client = self.connection.client().await?;
        let deleted = self.delete(&client).await?;
        let kept = "these shards could not be told and still have its counts: repeat the command";
        output::note_shards(&self.format.look, kept, &deleted.uncounted_shards);
        let was_there = deleted.namespace.is_some();
        removed::print(&deleted, was_there, &format!("namespace {namespace}"), &self.format)
    }
}

impl Delete {
    /// Repeats the call until no more topics have items than one call takes.
    async fn delete(&self, client: &Client) -> Result<DeleteNamespaceResponse, Failure> {
        let mut begun = BTreeSet::new();
        let force = self.items.force;
        let request = DeleteNamespaceRequest {
            namespace: client.namespace().to_owned(),
            force,
            // The call is repeated where its answer is lost, and where there is more to do.
            request_id: if force { client.request_id() } else { String::new() },
            reason: self.note.reason.clone(),
            dry_run: self.note.dry_run,
        };
        loop {
            let mut deleted = client.ask(request.clone()).await?;
            begun.append(&mut deleted.operation_ids.iter().cloned().collect());
            if !deleted.goes_on || self.note.dry_run {
                deleted.operation_ids = begun.into_iter().collect();
                return Ok(deleted);
            }
            let topics = begun.len();
            self.format.look.note(&format!("the items of {topics} topics are being removed; there are more"));
            sleep(REPEAT_EVERY).await;
        }
    }
}

impl One for DeleteNamespaceResponse {
    fn name(&self) -> String {
        self.namespace.as_ref().map(|it| it.namespace.clone()).unwrap_or_default()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("DeleteNamespaceResponse", self)
    }

    fn table(&self, style: &Style) -> Table {
        let it = self.namespace.clone().unwrap_or_default();
        let own = it.settings.unwrap_or_default();
        removed::table("NAMESPACE", &it.namespace, &own, &it.pauses, &self.operation_ids, style)
    }
}
