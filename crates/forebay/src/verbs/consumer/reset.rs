//! `forebay consumer reset`

use clap::Args;
use forebay_client::{ConsumerList, OperationKind, OperationQuery};
use forebay_types::filter::quoted;

use super::known::known;
use crate::{
    failure::{Failure, Status},
    verbs::bulk::Bulk,
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
    /// What all such verbs share.
    #[command(flatten)]
    bulk: Bulk,
}

impl Reset {
    /// Releases its leases.
    pub async fn run(self) -> Result<(), Failure> {
        let topics = match self.topic {
            Some(topic) => vec![topic],
            None => topics(&known(&self.bulk.connection.client().await?, u32::MAX).await?, &self.name)?,
        };
        let filter = format!("consumer = {}", quoted(&self.name));
        let query = |topic| OperationQuery {
            filter: filter.clone(),
            ..OperationQuery::new(OperationKind::ResetLeases, topic)
        };
        self.bulk.run_all(topics.into_iter().map(query).collect(), "released").await
    }
}

/// The topics of which a consumer may have leases. Fails unless all of them are known.
fn topics(found: &ConsumerList, name: &str) -> Result<Vec<String>, Failure> {
    let unknown = |why: &str| Failure::new(format!("{why}: name a topic with --topic"));
    if !found.incomplete_shards.is_empty() {
        let shards: Vec<String> = found.incomplete_shards.iter().map(ToString::to_string).collect();
        let why = format!("it may have leases in shards that could not be asked ({})", shards.join(", "));
        return Err(unknown(&why).with(Status::Unavailable));
    }
    match found.consumers.iter().find(|consumer| consumer.name == name) {
        Some(consumer) if consumer.topics_cut => Err(unknown("it has more topics than are known")),
        // Also of one that is found: not all leases may have been looked at.
        _ if found.cut => {
            Err(unknown("there are more consumers, or leases, than are known, and some may be of this one"))
        }
        Some(consumer) if consumer.leased > 0 => Ok(consumer.topics.clone()),
        _ => {
            let message = format!("no consumer {name} has leases");
            Err(Failure::new(message).with(Status::NotThere))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_client::KnownConsumer;

    use super::*;

    fn consumer(name: &str, leased: u64, topics_cut: bool) -> KnownConsumer {
        KnownConsumer {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            topics: vec!["mail".to_owned(), "sms".to_owned()],
            topics_cut,
            leased,
            oldest_lease_at: None,
            acks_per_second: 0.0,
            failures_per_second: 0.0,
            failure_ratio: 0.0,
            window: Duration::ZERO,
            last_seen_at: None,
            peer: String::new(),
            client: String::new(),
        }
    }

    #[test]
    fn leases_are_released_only_if_all_topics_are_known() {
        let consumers = vec![consumer("a", 1, false), consumer("b", 0, false), consumer("c", 1, true)];
        let all = ConsumerList { consumers, cut: false, incomplete_shards: Vec::new(), next: None };
        let status = |found: &ConsumerList, name| topics(found, name).map_err(|failure| failure.text());
        assert_eq!(status(&all, "a").unwrap(), ["mail", "sms"]);
        for name in ["b", "d"] {
            assert!(status(&all, name).unwrap_err().contains("no consumer"), "{name}");
        }
        assert!(status(&all, "c").unwrap_err().contains("more topics"));
        let cut = ConsumerList { cut: true, ..all.clone() };
        for name in ["a", "b", "d"] {
            let text = status(&cut, name).unwrap_err();
            assert!(text.contains("more consumers") && text.contains("--topic"), "{name}: {text}");
        }
        let incomplete = ConsumerList { incomplete_shards: vec![2, 3], ..all };
        for name in ["a", "b", "d"] {
            let text = status(&incomplete, name).unwrap_err();
            assert!(text.contains("(2, 3)") && text.contains("--topic"), "{text}");
        }
    }
}
