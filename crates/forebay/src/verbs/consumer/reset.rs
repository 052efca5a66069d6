//! `forebay consumer reset`

use clap::Args;
use forebay_client::{OperationKind, OperationQuery};

use crate::{
    failure::{Failure, Status},
    verbs::{bulk::Bulk, pages},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay consumer reset worker-7 --dry-run
  forebay consumer reset worker-7 --topic mail --reason 'its machine is gone' --yes

Its receipts are void then. No failure is counted. One operation for each topic is started.")]
pub struct Reset {
    /// The consumer, by the name that it gives itself
    name: String,
    /// Only leases of this topic [default: each topic that it has leases of]
    #[arg(long)]
    topic: Option<String>,
    /// What all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Reset {
    /// Releases its leases.
    pub async fn run(self) -> Result<(), Failure> {
        let topics = match &self.topic {
            Some(topic) => vec![topic.clone()],
            None => self.topics().await?,
        };
        let term = term(&self.name)?;
        for topic in topics {
            let query = OperationQuery::new(OperationKind::ResetLeases, topic);
            self.bulk.run_also(query, &term, "released").await?;
        }
        Ok(())
    }

    /// The topics of which it may have leases.
    async fn topics(&self) -> Result<Vec<String>, Failure> {
        let client = self.bulk.connection.client().await?;
        let pages = pages::collect(u32::MAX, async |page_size, page_token| {
            let page = client.consumers(page_size, page_token).await?;
            Ok((page.consumers.into_iter().filter(|it| it.name == self.name).collect(), page.next))
        });
        let known = pages.await?.0.pop();
        match known {
            Some(consumer) if consumer.topics_cut => {
                let message = "it has more topics than are known: name one with --topic";
                Err(Failure::new(message))
            }
            Some(consumer) if consumer.leased > 0 => Ok(consumer.topics),
            _ => {
                let message = format!("no consumer {} has leases", self.name);
                Err(Failure::new(message).with(Status::NotThere))
            }
        }
    }
}

/// The filter that a consumer's leases pass, and no others.
fn term(name: &str) -> Result<String, Failure> {
    if name.contains('"') || name.ends_with('*') {
        let message = "a name with a quote, or with * at its end, can't be told in a filter";
        return Err(Failure::usage(message));
    }
    Ok(format!("consumer = \"{name}\""))
}
