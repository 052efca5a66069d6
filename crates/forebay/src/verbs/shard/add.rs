//! `forebay shard add`

use clap::Args;
use forebay_node::cluster;

use crate::{failure::Failure, verbs::catalog::Catalog};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay shard add mysql://forebay@db3:3306/forebay_0007 --config forebay.toml")]
pub struct Add {
    /// Where it is, without a password. An empty schema is migrated
    url: String,
    /// Whose shards.
    #[command(flatten)]
    catalog: Catalog,
}

impl Add {
    /// Adds a shard.
    pub async fn run(self) -> Result<(), Failure> {
        let added = cluster::add_shard(&self.catalog.config()?, &self.url).await;
        let (id, is_new) = added.map_err(|error| Failure::new(error.to_string()))?;
        let schema = if is_new { "its schema was made" } else { "its schema was there" };
        self.catalog.confirm(&format!("shard {id} was added; {schema}"))
    }
}
