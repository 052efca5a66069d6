//! `forebay topic explain`

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
        let client = self.connection.client().await?;
        let (namespace, topic) = (client.namespace().to_owned(), self.topic);
        let answer = client.ask(v1::ExplainTopicRequest { namespace, topic }).await?;
        explained::print(&answer.blockers, answer.incomplete_shards, &self.format)
    }
}
