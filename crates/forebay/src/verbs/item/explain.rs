//! `forebay item explain`

use clap::Args;

use crate::{
    failure::Failure,
    output::Format,
    verbs::{connection::Connection, explained},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay item explain 3-1041
  forebay item explain 3-1041 -o json")]
pub struct Explain {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The item's id, as 3-1041
    item: String,
}

impl Explain {
    /// Says why the item is not delivered.
    pub async fn run(self) -> Result<(), Failure> {
        let explained = self.connection.client().await?.explain_item(&self.item).await?;
        explained::print(explained, &self.format)
    }
}
