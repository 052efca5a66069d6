//! The counts of forgotten topics, which belong to the sums of namespaces.

use std::{collections::BTreeSet, ops::Bound};

use forebay_types::{Namespace, Refusal, ShardId, TopicName};

use super::topics::Page;
use crate::{
    api::{LifetimeCounts, TopicScope},
    engine::Engine,
    messages::{
        event::Event,
        look::{ForgottenQuestion, ShardLook},
    },
};

impl Engine {
    /// The namespace counts anew from now on, but for its topics that are there. Returns the shards of this
    /// node that will have done so with their next batch.
    pub async fn forget_counts(&self, namespace: Namespace) -> Result<Vec<ShardId>, Refusal> {
        self.ask(|reply| Event::ForgetCounts { namespace, reply }).await
    }

    /// Adds to a page what forgotten topics counted: as topics without a name. Returns the shards that were
    /// lost meanwhile.
    pub(super) async fn add_forgotten(
        &self,
        page: &mut Page,
        shards: &[ShardLook],
        scope: &TopicScope,
        from: Bound<TopicName>,
        limit: usize,
    ) -> Result<BTreeSet<ShardId>, Refusal> {
        let mut lost = BTreeSet::new();
        for shard in shards.iter().filter(|shard| shard.has_forgotten) {
            let question = ForgottenQuestion {
                caller: super::caller(scope.namespace.as_ref()),
                shard: shard.index,
                term: shard.term,
                from: from.clone(),
                through: page.through().or_else(|| scope.end()),
                most: limit,
            };
            match self.ask(|reply| Event::LookForgotten { question, reply }).await? {
                Some(found) => page.add_forgotten(found, scope, limit),
                None => drop(lost.insert(shard.id)),
            }
        }
        Ok(lost)
    }
}

impl Page {
    fn add_forgotten(&mut self, found: Vec<(Namespace, LifetimeCounts)>, scope: &TopicScope, limit: usize) {
        let last = found.last().filter(|_| found.len() >= limit);
        let last = last.map(|(namespace, _)| TopicName::new(namespace.clone(), ""));
        last.into_iter().for_each(|last| self.cut_at(last));
        for (namespace, counted) in found {
            let name = TopicName::new(namespace, "");
            if scope.contains(&name) {
                self.count(name, counted);
            }
        }
    }
}
