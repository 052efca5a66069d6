//! GroupDeadLetters: why dead letters died.

use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{client::Client, durations::time_from_proto, error::Error};

/// The latest dead letters by why they died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadGroups {
    /// Those that have the most first.
    pub groups: Vec<DeadGroup>,
    /// How many dead letters were looked at.
    pub looked_at: u64,
    /// How many there are.
    pub total: u64,
    /// How many of those that were looked at are in none of the groups.
    pub ungrouped: u64,
    /// There are more topics than were looked at.
    pub topics_cut: bool,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

/// Dead letters that died for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadGroup {
    /// Names the group.
    pub fingerprint: String,
    /// What they have in common of their reasons, or how they died if they have none.
    pub reason: String,
    /// How many there are.
    pub count: u64,
    /// Some of their topics, at most 10.
    pub topics: Vec<String>,
    /// They have more topics.
    pub topics_cut: bool,
    /// When the first of them died.
    pub first_died_at: Option<Timestamp>,
    /// When the last of them died.
    pub last_died_at: Option<Timestamp>,
    /// Some of them, at most 5.
    pub sample_item_ids: Vec<String>,
}

impl Client {
    /// Groups the latest dead letters of a topic, or of all topics of the namespace, by their reasons. Each
    /// shard looks at so many of them, at most 10,000; 0: at so many.
    pub async fn group_dead_letters(&self, topic: Option<&str>, window: u32) -> Result<DeadGroups, Error> {
        let request = v1::GroupDeadLettersRequest {
            namespace: self.config.namespace.clone(),
            topic: topic.unwrap_or_default().to_owned(),
            window,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.group_dead_letters(request).await }
            })
            .await?;
        let group = |group: v1::DeadLetterGroup| DeadGroup {
            fingerprint: group.fingerprint,
            reason: group.reason,
            count: group.count,
            topics: group.topics,
            topics_cut: group.topics_cut,
            first_died_at: group.first_died_at.map(time_from_proto),
            last_died_at: group.last_died_at.map(time_from_proto),
            sample_item_ids: group.sample_item_ids,
        };
        Ok(DeadGroups {
            groups: answer.groups.into_iter().map(group).collect(),
            looked_at: answer.looked_at,
            total: answer.total,
            ungrouped: answer.ungrouped,
            topics_cut: answer.topics_cut,
            incomplete_shards: answer.incomplete_shards,
        })
    }
}
