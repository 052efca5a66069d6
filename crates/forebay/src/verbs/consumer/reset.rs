//! `forebay consumer reset`

use clap::Args;
use forebay_client::v1::{ListConsumersResponse, OperationKind, StartOperationRequest};
use forebay_types::{filter::quoted, is_prefix};

use super::{
    known::known,
    search::{not_asked, search},
};
use crate::{
    failure::{Failure, Status},
    verbs::{bulk::Bulk, follow},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay consumer reset worker-7 --dry-run
  forebay consumer reset worker-7 --topic mail --reason 'its machine is gone' --yes

Its receipts are void then. No failure is counted. One operation for each topic is started, and --limit and
--expect-at-most count for each.")]
pub struct Reset {
    /// The consumer, by the name that it gives itself
    name: String,
    /// Only leases of this topic [default: each topic that it has leases of]
    #[arg(long)]
    topic: Option<String>,
    /// Flags that all such verbs share.
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
        let filter = format!("consumer = {}", quoted(&self.name));
        let query = |topic| StartOperationRequest {
            filter: filter.clone(),
            ..follow::of_topic(OperationKind::ResetLeases, topic)
        };
        self.bulk.run_all(topics.into_iter().map(query).collect(), "released").await
    }

    /// The topics of which it has leases.
    async fn topics(&self) -> Result<Vec<String>, Failure> {
        let client = self.bulk.connection.client().await?;
        let topics = match topics(&known(&client, u32::MAX).await?, &self.name)? {
            Some(topics) => topics,
            None => {
                let look = &self.bulk.format.look;
                look.note("not all consumers are known: each topic with leases is looked into");
                search(&client, &self.name).await?
            }
        };
        if topics.is_empty() {
            let message = format!("no consumer {} has leases", self.name);
            return Err(Failure::new(message).with(Status::NotThere));
        }
        Ok(topics)
    }
}

/// The topics of which a consumer has leases. `None`: not all of them are known. Fails if a shard could not
/// be asked.
fn topics(found: &ListConsumersResponse, name: &str) -> Result<Option<Vec<String>>, Failure> {
    if !found.incomplete_shards.is_empty() {
        return Err(not_asked(&found.incomplete_shards));
    }
    Ok(match found.consumers.iter().find(|consumer| consumer.name == name) {
        Some(consumer) if consumer.topics_cut => None,
        // Also of one that is found: not all leases may have been looked at.
        _ if found.consumers_cut => None,
        Some(consumer) if consumer.leased_count > 0 => {
            // A prefix that it asked for is no topic.
            let topics = consumer.topics.iter().filter(|topic| !is_prefix(topic));
            Some(topics.cloned().collect())
        }
        _ => Some(Vec::new()),
    })
}

#[cfg(test)]
mod tests {
    use forebay_client::v1::Consumer;

    use super::*;

    fn consumer(name: &str, leased_count: u64, topics_cut: bool) -> Consumer {
        let topics = vec!["mail".to_owned(), "calls/*".to_owned(), "sms".to_owned()];
        Consumer { name: name.to_owned(), topics, topics_cut, leased_count, ..Default::default() }
    }

    #[test]
    fn topics_are_told_only_if_all_of_them_are_known() {
        let consumers = vec![consumer("a", 1, false), consumer("b", 0, false), consumer("c", 1, true)];
        let all = ListConsumersResponse { consumers, ..Default::default() };
        let found =
            |found: &ListConsumersResponse, name| topics(found, name).map_err(|failure| failure.text());
        let both = Some(vec!["mail".to_owned(), "sms".to_owned()]);
        assert_eq!((found(&all, "a"), found(&all, "b")), (Ok(both), Ok(Some(vec![]))));
        assert_eq!((found(&all, "c"), found(&all, "d")), (Ok(None), Ok(Some(vec![]))));
        let cut = ListConsumersResponse { consumers_cut: true, ..all.clone() };
        let incomplete = ListConsumersResponse { incomplete_shards: vec![3, 2, 3], ..all };
        for name in ["a", "b", "d"] {
            assert_eq!(found(&cut, name), Ok(None), "{name}");
            let text = found(&incomplete, name).unwrap_err();
            assert!(text.contains("(2, 3)") && text.contains("--topic"), "{text}");
        }
    }
}
