//! Consumers of a namespace, as all nodes know them.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::ConsumerFigures;
use forebay_proto::{peer, v1};
use forebay_types::{Namespace, Refusal};

use super::Gather;
use crate::peers::wire::consumers::{add, finish, response};

impl Gather {
    /// The consumers that all nodes know.
    pub async fn consumers(&self, namespace: &Namespace) -> Result<v1::ListConsumersResponse, Refusal> {
        let asked =
            self.ask_others(|links, address| async move { links.list_consumers(&address, namespace).await });
        let (own, others) = tokio::join!(self.engine.consumers(namespace), asked);
        let (mut sum, shards) = merge(std::iter::once(response(own?)).chain(others));
        sum.incomplete_shards = self.incomplete(&shards).await;
        Ok(sum)
    }
}

fn merge(
    answers: impl Iterator<Item = peer::ListConsumersResponse>,
) -> (v1::ListConsumersResponse, BTreeSet<u32>) {
    let mut by_name: BTreeMap<String, v1::Consumer> = BTreeMap::new();
    let (mut cut, mut shards) = (false, BTreeSet::new());
    for answer in answers {
        cut |= answer.cut;
        shards.extend(answer.shards);
        for consumer in answer.consumers {
            match by_name.get_mut(&consumer.name) {
                Some(sum) => add(sum, consumer),
                None => drop(by_name.insert(consumer.name.clone(), consumer)),
            }
        }
    }
    let consumers_cut = cut || by_name.len() > ConsumerFigures::CONSUMERS_MAX;
    let mut consumers: Vec<_> = by_name.into_values().take(ConsumerFigures::CONSUMERS_MAX).collect();
    consumers.iter_mut().for_each(finish);
    (v1::ListConsumersResponse { consumers, consumers_cut, incomplete_shards: Vec::new() }, shards)
}
