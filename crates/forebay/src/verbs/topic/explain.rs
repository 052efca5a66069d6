//! `forebay topic explain`

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
  forebay topic explain mail
  forebay topic explain mail -o wide
  forebay topic explain mail -o json")]
pub struct Explain {
    /// Server and namespace.
    #[command(flatten)]
    connection: Connection,
    /// Output format.
    #[command(flatten)]
    format: Format,
    /// The topic
    topic: String,
}

impl Explain {
    /// Says why items of the topic are not delivered.
    pub async fn run(self) -> Result<(), Failure> {
        let explained = self.connection.client().await?.explain_topic(&self.topic).await?;
        explained::print(explained, &self.format)
    }
}
