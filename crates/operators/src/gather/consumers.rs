//! Consumers, as all nodes know them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use forebay_peers::looks::{
    Part,
    consumers::{add, finish, position},
};
use forebay_proto::v1;
use forebay_types::Refusal;

use super::Gather;

impl Gather {
    /// The consumers that all nodes know, and the position up to which they are listed. `None`: there are no
    /// more.
    pub async fn consumers(
        &self,
        request: &v1::ListConsumersRequest,
    ) -> Result<(v1::ListConsumersResponse, Option<Bytes>), Refusal> {
        let parts = self.look(request).await?;
        let shards: BTreeSet<u32> = parts.iter().flat_map(|part| &part.rest.shards).copied().collect();
        let (mut page, through) = merge(request.page_size as usize, parts);
        page.incomplete_shards = self.incomplete(&shards);
        Ok((page, through))
    }
}

fn merge(
    limit: usize,
    parts: Vec<Part<v1::ListConsumersResponse>>,
) -> (v1::ListConsumersResponse, Option<Bytes>) {
    let mut by_position: BTreeMap<Bytes, v1::Consumer> = BTreeMap::new();
    let mut consumers_cut = false;
    // Up to where every node has told all.
    let through = parts.iter().filter_map(Part::through).min();
    for consumer in parts.into_iter().flat_map(|Part { answer, .. }| {
        consumers_cut |= answer.consumers_cut;
        answer.consumers
    }) {
        let position = position(&consumer.namespace, &consumer.name).into();
        match by_position.get_mut(&position) {
            Some(sum) => add(sum, consumer),
            None => drop(by_position.insert(position, consumer)),
        }
    }
    if let Some(through) = &through {
        by_position.retain(|position, _| position <= through);
    }
    let more = by_position.len() > limit;
    let mut page: Vec<_> = by_position.into_iter().take(limit).collect();
    let last = page.last().filter(|_| more).map(|(position, _)| position.clone());
    page.iter_mut().for_each(|(_, consumer)| finish(consumer));
    let consumers = page.into_iter().map(|(_, consumer)| consumer).collect();
    let page = v1::ListConsumersResponse { consumers, consumers_cut, ..v1::ListConsumersResponse::default() };
    (page, last.or(through))
}

#[cfg(test)]
mod tests {
    use forebay_proto::peer::AskResponse;

    use super::*;

    fn part(names: &[&str], through: Option<&str>) -> Part<v1::ListConsumersResponse> {
        let consumer = |text: &&str| {
            let (namespace, name) = text.split_once('/').unwrap();
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            v1::Consumer { namespace, name, leased_count: 1, ..v1::Consumer::default() }
        };
        let consumers = names.iter().map(consumer).collect();
        let answer = v1::ListConsumersResponse { consumers, ..v1::ListConsumersResponse::default() };
        let mut part = Part { answer, rest: AskResponse::default() };
        part.rest.through = through.map(|text| text.replace('/', "\0").into()).unwrap_or_default();
        part
    }

    fn page(
        limit: usize,
        parts: Vec<Part<v1::ListConsumersResponse>>,
    ) -> (Vec<(String, u64)>, Option<String>) {
        let (page, through) = merge(limit, parts);
        let told = |it: &v1::Consumer| (format!("{}/{}", it.namespace, it.name), it.leased_count);
        let next = through.map(|position| String::from_utf8_lossy(&position).replace('\0', "/"));
        (page.consumers.iter().map(told).collect(), next)
    }

    fn named(names: &[(&str, u64)]) -> Vec<(String, u64)> {
        names.iter().map(|(name, leased)| ((*name).to_owned(), *leased)).collect()
    }

    #[test]
    fn a_page_ends_where_the_first_node_has_told_no_more() {
        let answers = || vec![part(&["a/x", "b/x"], Some("b/x")), part(&["a/x", "a/y", "c/x"], None)];
        let all = named(&[("a/x", 2), ("a/y", 1), ("b/x", 1)]);
        assert_eq!(page(9, answers()), (all, Some("b/x".to_owned())));
        assert_eq!(page(2, answers()), (named(&[("a/x", 2), ("a/y", 1)]), Some("a/y".to_owned())));
        assert_eq!(page(1, vec![part(&["a/x"], None)]), (named(&[("a/x", 1)]), None));
    }
}
