//! Consumers, as all nodes know them.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::{ConsumerName, ConsumersCall};
use forebay_proto::{peer, v1};
use forebay_types::Refusal;

use super::Gather;
use crate::peers::wire::consumers::{add, finish, of_name, response};

/// A page of consumers.
pub struct ConsumersPage {
    /// By namespace and name.
    pub consumers: Vec<v1::Consumer>,
    /// Some of them may be missing.
    pub cut: bool,
    /// Where the next page begins: behind this one. `None`: there is none.
    pub next: Option<ConsumerName>,
    /// Shards that could not be asked.
    pub incomplete: Vec<u32>,
}

impl Gather {
    /// The consumers that all nodes know.
    pub async fn consumers(&self, call: &ConsumersCall) -> Result<ConsumersPage, Refusal> {
        let asked =
            self.ask_others(|links, address| async move { links.list_consumers(&address, call).await });
        let (own, others) = tokio::join!(self.engine.consumers(call), asked);
        let answers = std::iter::once(response(own?)).chain(others);
        let (page, shards) = merge(call, answers);
        Ok(ConsumersPage { incomplete: self.incomplete(&shards).await, ..page })
    }
}

fn merge(
    call: &ConsumersCall,
    answers: impl Iterator<Item = peer::ListConsumersResponse>,
) -> (ConsumersPage, BTreeSet<u32>) {
    let mut by_name: BTreeMap<ConsumerName, v1::Consumer> = BTreeMap::new();
    let (mut cut, mut shards) = (false, BTreeSet::new());
    // Up to which name every node has told all.
    let mut through: Option<ConsumerName> = None;
    for answer in answers {
        cut |= answer.cut;
        shards.extend(answer.shards);
        through = through.into_iter().chain(answer.through.map(of_name)).min();
        for mut consumer in answer.consumers {
            if let (true, Some(namespace)) = (consumer.namespace.is_empty(), &call.namespace) {
                // A node of an earlier release says only the name.
                consumer.namespace = namespace.to_string();
            }
            let key = (consumer.namespace.as_str().into(), consumer.name.clone());
            // Such a node lists from the first name on.
            if !call.has(&key.0, &key.1) {
                continue;
            }
            match by_name.get_mut(&key) {
                Some(sum) => add(sum, consumer),
                None => drop(by_name.insert(key, consumer)),
            }
        }
    }
    if let Some(through) = &through {
        by_name.retain(|name, _| name <= through);
    }
    let more = by_name.len() > call.limit;
    let mut page: Vec<_> = by_name.into_iter().take(call.limit).collect();
    let last = page.last().filter(|_| more).map(|(name, _)| name.clone());
    page.iter_mut().for_each(|(_, consumer)| finish(consumer));
    let consumers = page.into_iter().map(|(_, consumer)| consumer).collect();
    (ConsumersPage { consumers, cut, next: last.or(through), incomplete: Vec::new() }, shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(names: &[&str], through: Option<&str>) -> peer::ListConsumersResponse {
        let name = |text: &str| {
            let (namespace, name) = text.split_once('/').unwrap();
            (namespace.to_owned(), name.to_owned())
        };
        let consumer = |text: &&str| {
            let (namespace, name) = name(text);
            v1::Consumer { namespace, name, leased_count: 1, ..v1::Consumer::default() }
        };
        let through = through.map(name).map(|(namespace, name)| peer::ConsumerName { namespace, name });
        let consumers = names.iter().map(consumer).collect();
        peer::ListConsumersResponse { consumers, through, ..peer::ListConsumersResponse::default() }
    }

    fn page(limit: usize, answers: Vec<peer::ListConsumersResponse>) -> (Vec<(String, u64)>, Option<String>) {
        let call = ConsumersCall { namespace: None, after: None, limit };
        let (page, _) = merge(&call, answers.into_iter());
        let told = |it: &v1::Consumer| (format!("{}/{}", it.namespace, it.name), it.leased_count);
        let next = page.next.map(|(namespace, name)| format!("{namespace}/{name}"));
        (page.consumers.iter().map(told).collect(), next)
    }

    fn named(names: &[(&str, u64)]) -> Vec<(String, u64)> {
        names.iter().map(|(name, leased)| ((*name).to_owned(), *leased)).collect()
    }

    #[test]
    fn a_page_ends_where_the_first_node_has_told_no_more() {
        let answers = || vec![answer(&["a/x", "b/x"], Some("b/x")), answer(&["a/x", "a/y", "c/x"], None)];
        let all = named(&[("a/x", 2), ("a/y", 1), ("b/x", 1)]);
        assert_eq!(page(9, answers()), (all, Some("b/x".to_owned())));
        assert_eq!(page(2, answers()), (named(&[("a/x", 2), ("a/y", 1)]), Some("a/y".to_owned())));
        assert_eq!(page(1, vec![answer(&["a/x"], None)]), (named(&[("a/x", 1)]), None));
    }
}
