//! `forebay namespace delete`

use clap::Args;
use forebay_client::DeletedNamespace;
use forebay_proto::v1;
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Format, One, Style, Table},
    verbs::{connection::Connection, note::Note, removed},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay namespace delete --namespace shop --dry-run
  forebay namespace delete --namespace shop --reason 'closed'
  forebay namespace delete --namespace shop --force --yes

A namespace that has items is not deleted: remove them first, topic by topic, with `forebay topic purge` and
`forebay dead-letter delete`, or with it by --force. Pauses and settings go at once, items bit by bit: to keep
consumers from them, purge first.")]
pub struct Delete {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// What becomes of its items.
    #[command(flatten)]
    items: removed::Force,
    /// What all changes share.
    #[command(flatten)]
    note: Note,
}

impl Delete {
    /// Removes the settings and the pauses of the namespace.
    pub async fn run(self) -> Result<(), Failure> {
        let namespace = self.connection.servers.namespace()?;
        self.items.confirm(&format!("Namespace {}", output::visible(&namespace)), self.note.dry_run)?;
        let client = self.connection.client().await?;
        let deleted = client.delete_namespace(self.items.force, self.note.into()).await?;
        let kept = "these shards could not be told and still have its counts: repeat the command";
        output::note_shards(&self.format.look, kept, &deleted.uncounted_shards);
        output::print_one(&deleted, &self.format)
    }
}

impl One for DeletedNamespace {
    fn name(&self) -> String {
        self.figures.namespace.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let message = v1::DeleteNamespaceResponse {
            namespace: Some(output::namespace(&self.figures)),
            operation_ids: self.operation_ids.clone(),
            uncounted_shards: self.uncounted_shards.clone(),
        };
        output::to_json("DeleteNamespaceResponse", &message)
    }

    fn table(&self, style: &Style) -> Table {
        let it = &self.figures;
        removed::table("NAMESPACE", &it.namespace, &it.settings, &it.pauses, &self.operation_ids, style)
    }
}
