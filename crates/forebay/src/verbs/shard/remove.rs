//! `forebay shard remove`

use clap::Args;
use forebay_client::v1;
use forebay_operators::cluster;

use crate::{
    failure::Failure,
    verbs::change::{By, Change, failed},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard remove 3
  forebay shard remove 3 --lost --reason 'db3 burnt down'
  forebay shard remove 3 --config forebay.toml")]
pub struct Remove {
    /// The shard's number
    shard: u32,
    /// Its server is gone for good: remove it with all that is in it
    #[arg(long)]
    lost: bool,
    /// By whom it is removed.
    #[command(flatten)]
    change: Change,
}

impl Remove {
    /// Removes a shard.
    pub async fn run(self) -> Result<(), Failure> {
        let (shard, lost, note) = (self.shard, self.lost, self.change.note());
        let was_there = match self.change.by().await? {
            By::Config(config) => {
                cluster::remove_shard(&config, shard, lost, note.dry_run).await.map_err(failed)?
            }
            By::Node(client) => {
                let (reason, dry_run) = (note.reason, note.dry_run);
                let request = v1::RemoveShardRequest { shard_id: shard, lost, reason, dry_run };
                client.ask(request).await?.shard.is_some()
            }
        };
        self.change.confirm(&match self.lost {
            _ if !was_there => format!("the catalog has no shard {shard}: nothing was to be done"),
            false => format!("shard {shard} was removed"),
            true => format!(
                "shard {shard} was removed with all that was in it: its items are lost, and what was stored \
                 there under a dedupe key or a request id may be stored again"
            ),
        })
    }
}
