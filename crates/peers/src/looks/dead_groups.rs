//! GroupDeadLetters.

use forebay_engine::{DeadGroup, DeadGroups, DeadGroupsCall, Engine};
use forebay_proto::{time::to_timestamp, v1};
use forebay_types::{Namespace, Refusal};

use super::{Look, Part};
use crate::history::History;

/// The most dead letters of each shard.
const DEAD_LETTERS_MAX: usize = 10_000;

impl Look for v1::GroupDeadLettersRequest {
    const NAME: &'static str = "GroupDeadLetters";
    type Answer = v1::GroupDeadLettersResponse;

    fn caller(&self) -> Namespace {
        self.namespace.as_str().into()
    }

    async fn look(self, engine: &Engine, _: &History) -> Result<Part<Self::Answer>, Refusal> {
        let Self { namespace, topic, window } = self;
        let topic = Some(topic).filter(|topic| !topic.is_empty()).map(Into::into);
        let window = (window as usize).clamp(1, DEAD_LETTERS_MAX);
        let call = DeadGroupsCall { namespace: namespace.into(), topic, window };
        let DeadGroups { groups, looked_at, ungrouped, total, topics_cut, shards } =
            engine.dead_groups(call).await?;
        let groups = groups.into_iter().map(group).collect();
        let incomplete_shards = Vec::new();
        let answer = Self::Answer { groups, looked_at, total, ungrouped, topics_cut, incomplete_shards };
        Ok(Part::new(answer, shards))
    }
}

fn group(group: DeadGroup) -> v1::DeadLetterGroup {
    v1::DeadLetterGroup {
        fingerprint: group.fingerprint,
        reason: group.reason,
        count: group.count,
        topics: group.topics.iter().map(ToString::to_string).collect(),
        topics_cut: group.topics_cut,
        first_died_at: Some(to_timestamp(group.first)),
        last_died_at: Some(to_timestamp(group.last)),
        sample_item_ids: group.samples.iter().map(ToString::to_string).collect(),
    }
}
