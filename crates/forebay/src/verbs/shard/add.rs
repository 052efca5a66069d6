//! `forebay shard add`

use clap::Args;
use forebay_client::v1;
use forebay_operators::cluster::{self, Servers};

use crate::{
    failure::Failure,
    verbs::change::{By, Change, failed},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard add mysql://forebay@db3:3306/forebay_0007
  forebay shard add mysql://forebay@db3:3306/forebay_0007 --dry-run --config forebay.toml")]
pub struct Add {
    /// Where it is, without a password. An empty schema is migrated
    url: String,
    /// By whom it is added.
    #[command(flatten)]
    change: Change,
}

impl Add {
    /// Adds a shard.
    pub async fn run(self) -> Result<(), Failure> {
        let note = self.change.note();
        let (id, schema) = match self.change.by().await? {
            By::Config(config) => {
                let added = cluster::add_shard(&config, &self.url, Servers::Any, note.dry_run).await;
                let (id, is_new) = added.map_err(failed)?;
                (id.map(|id| id.0), if is_new { "; its schema was made" } else { "; its schema was there" })
            }
            By::Node(client) => {
                let request =
                    v1::AddShardRequest { url: self.url, reason: note.reason, dry_run: note.dry_run };
                let added = client.ask(request).await?.shard;
                // Tried without effect, it has no number yet.
                (added.map(|shard| shard.id).filter(|id| *id > 0), "")
            }
        };
        let which = id.map_or_else(|| "a new shard".to_owned(), |id| format!("shard {id}"));
        self.change.confirm(&format!("{which} was added{schema}"))
    }
}
