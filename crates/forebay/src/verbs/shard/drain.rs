//! `forebay shard drain`

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
  forebay shard drain 3 --reason 'db3 is replaced'
  forebay shard drain 3 --undo
  forebay shard drain 3 --config forebay.toml")]
pub struct Drain {
    /// The shard's number
    shard: u32,
    /// Let it take new items again
    #[arg(long)]
    undo: bool,
    /// By whom it is drained.
    #[command(flatten)]
    change: Change,
}

impl Drain {
    /// Drains a shard, or undoes that.
    pub async fn run(self) -> Result<(), Failure> {
        let (shard, undo, note) = (self.shard, self.undo, self.change.note());
        match self.change.by().await? {
            By::Config(config) => {
                cluster::drain_shard(&config, shard, !undo, note.dry_run).await.map_err(failed)?;
            }
            By::Node(client) => {
                let (reason, dry_run) = (note.reason, note.dry_run);
                client.ask(v1::DrainShardRequest { shard_id: shard, undo, reason, dry_run }).await?;
            }
        }
        self.change.confirm(&match self.undo {
            false => {
                format!("shard {shard} takes no new items; `forebay shard list` says what is left in it")
            }
            true => format!("shard {shard} takes new items again"),
        })
    }
}
