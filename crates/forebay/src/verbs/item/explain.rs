//! `forebay item explain`

use clap::Args;
use forebay_client::v1;

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
        let client = self.connection.client().await?;
        let (namespace, item_id) = (client.namespace().to_owned(), self.item);
        let answer = client.ask(v1::ExplainItemRequest { namespace, item_id }).await?;
        explained::print(&answer.blockers, Vec::new(), &self.format)
    }
}
