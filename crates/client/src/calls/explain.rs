//! ExplainTopic and ExplainItem: why items are not delivered.

use forebay_proto::v1::{self, BlockerCode};
use forebay_types::Timestamp;

use crate::{client::Client, durations::time_from_proto, error::Error};

/// Something that keeps items from being delivered, or that nothing does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// What it is, as `NO_CONSUMER`. Empty: that is not known to this program.
    pub code: String,
    /// The same for people.
    pub sentence: String,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// Which node or consumer it is about. May be empty.
    pub by: String,
    /// In which shard.
    pub shard: Option<u32>,
    /// How many items it is about.
    pub count: Option<u64>,
}

/// Why items are not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// In the order in which they would have to go.
    pub blockers: Vec<Blocker>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

impl Client {
    /// Why items of a topic are not delivered, or that they are.
    pub async fn explain_topic(&self, topic: &str) -> Result<Explained, Error> {
        let (namespace, topic) = (self.config.namespace.clone(), topic.to_owned());
        let request = v1::ExplainTopicRequest { namespace, topic };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.explain_topic(request).await }
            })
            .await?;
        let blockers = answer.blockers.into_iter().map(blocker).collect();
        Ok(Explained { blockers, incomplete_shards: answer.incomplete_shards })
    }

    /// Why an item is not delivered, or that it is next.
    pub async fn explain_item(&self, item_id: &str) -> Result<Explained, Error> {
        let (namespace, item_id) = (self.config.namespace.clone(), item_id.to_owned());
        let request = v1::ExplainItemRequest { namespace, item_id };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.explain_item(request).await }
            })
            .await?;
        let blockers = answer.blockers.into_iter().map(blocker).collect();
        Ok(Explained { blockers, incomplete_shards: Vec::new() })
    }
}

fn blocker(it: v1::Blocker) -> Blocker {
    let code = match it.code() {
        BlockerCode::Unspecified => "",
        code => code.as_str_name().trim_start_matches("BLOCKER_CODE_"),
    };
    Blocker {
        code: code.to_owned(),
        sentence: it.sentence,
        since: it.since.map(time_from_proto),
        until: it.until.map(time_from_proto),
        by: it.by,
        shard: it.shard,
        count: it.count,
    }
}
