//! `forebay shard list`

use clap::Args;
use forebay_client::v1::{Shard, ShardState};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row, Tone},
    verbs::connection::Connection,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard list
  forebay shard list -o wide
  forebay shard list --addr queue1:7420 -o json")]
pub struct ListShards {
    /// Which node is asked.
    #[command(flatten)]
    connection: Connection,
    /// How the list is printed.
    #[command(flatten)]
    format: Format,
}

impl ListShards {
    /// Lists the shards of the cluster and who owns them.
    pub async fn run(self) -> Result<(), Failure> {
        let shards = self.connection.client().await?.shards().await?;
        List::all("shards", &shards).print(self.format.output, &self.format.look)
    }
}

impl Row for Shard {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("SHARD", |shard, _| shard.id.into()),
        Column::new("STATE", |shard, _| {
            let tone = if shard.state() == ShardState::Active { Tone::Good } else { Tone::Warn };
            Cell::toned(output::word(shard.state().as_str_name(), "SHARD_STATE_"), tone)
        }),
        Column::new("OWNER", |shard, _| match shard.owner.as_str() {
            "" => Cell::toned("-", Tone::Bad),
            owner => Cell::from(owner),
        }),
        Column::new("WISHED OWNER", |shard, _| {
            format!("{}{}", shard.wished_owner, if shard.pinned { " (pinned)" } else { "" }).into()
        }),
        Column::new("SERVER", |shard, _| Cell::from(&shard.server)),
        Column::new("HELD UP BY", |shard, _| Cell::from(&shard.hold_up)),
        Column::new("TROUBLE", |shard, _| Cell::toned(&shard.trouble, Tone::Bad)),
        Column::wide("ITEMS", |shard, _| {
            shard.items.map_or_else(|| "-".to_owned(), |items| items.to_string()).into()
        }),
        Column::wide("EPOCH", |shard, _| shard.epoch.into()),
        Column::wide("SINCE", |shard, style| style.optional_time(shard.since).into()),
    ];

    fn name(&self) -> String {
        self.id.to_string()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Shard", self)
    }
}
