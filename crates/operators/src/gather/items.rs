//! Items of all nodes.

use std::collections::{BTreeMap, BTreeSet};

use forebay_engine::{ItemPosition, ItemsCall};
use forebay_peers::looks::{
    Look as _, Part,
    items::{self, position_of},
};
use forebay_proto::v1;
use forebay_types::{ItemId, Namespace, Refusal};
use prost::Message as _;

use super::Gather;

/// Bytes of items in one answer. The answer of each node has no more.
pub const ANSWER_BYTES_MAX: usize = 3 << 20;

/// A page of items, of all nodes.
#[derive(Debug, Default)]
pub struct ItemScan {
    /// In order.
    pub items: Vec<v1::Item>,
    /// All up to this one are listed. `None`: there are no more.
    pub through: Option<ItemPosition>,
    /// The shards that were looked at.
    pub shards: BTreeSet<u32>,
    /// How many items were looked at.
    pub scanned: u64,
}

impl Gather {
    /// The items behind a position. What all nodes know is kept, as far as there is room for it.
    pub async fn items(&self, call: &ItemsCall) -> Result<ItemScan, Refusal> {
        let mut scan = ItemScan::default();
        let mut found = BTreeMap::new();
        for part in self.look(&items::request(call)).await? {
            let through = part.through().as_deref().and_then(position_of);
            scan.through = scan.through.into_iter().chain(through).min();
            let Part { answer, rest } = part;
            scan.shards.extend(rest.shards);
            scan.scanned += answer.scanned;
            let listed = rest.positions.iter().zip(answer.items);
            found.extend(listed.filter_map(|(position, item)| Some((position_of(position)?, item))));
        }
        scan.fill(found, call.limit);
        Ok(scan)
    }

    /// The item with an id. `None`: it is not there. The outer `None`: the shard could not be looked at.
    pub async fn item(
        &self,
        namespace: &Namespace,
        id: ItemId,
        payload_max: usize,
    ) -> Result<Option<Option<v1::Item>>, Refusal> {
        let request = &v1::GetItemRequest {
            namespace: namespace.to_string(),
            item_id: id.to_string(),
            max_payload_bytes: u32::try_from(payload_max).unwrap_or(u32::MAX),
            ..v1::GetItemRequest::default()
        };
        let looked = |part: &Part<v1::GetItemResponse>| !part.rest.shards.is_empty();
        let own = request.clone().look(&self.engine, &self.history).await?;
        if looked(&own) {
            return Ok(Some(own.answer.item));
        }
        let others = self.ask_others(|links, address| async move { links.ask(&address, request).await });
        Ok(others.await.into_iter().find(looked).map(|part| part.answer.item))
    }
}

impl ItemScan {
    /// Takes what all nodes know of, and no more than so many items and bytes.
    fn fill(&mut self, found: BTreeMap<ItemPosition, v1::Item>, limit: usize) {
        let mut bytes = 0;
        let mut last = None;
        for (position, item) in found {
            if self.through.is_some_and(|through| position > through) {
                return;
            }
            bytes += item.encoded_len();
            if self.items.len() == limit || bytes > ANSWER_BYTES_MAX && !self.items.is_empty() {
                self.through = last;
                return;
            }
            last = Some(position);
            self.items.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ShardId;

    use super::*;

    fn found(count: i64, payload: usize) -> BTreeMap<ItemPosition, v1::Item> {
        let item = || v1::Item { payload: vec![7; payload].into(), ..v1::Item::default() };
        (1..=count).map(|at| (position(at), item())).collect()
    }

    fn position(first: i64) -> ItemPosition {
        ItemPosition { first, second: 0, shard: ShardId(1), seq: 1 }
    }

    #[test]
    fn a_page_ends_where_a_node_ended_or_it_is_full() {
        let fill = |through, count, payload, limit| {
            let mut scan = ItemScan { through, ..ItemScan::default() };
            scan.fill(found(count, payload), limit);
            (scan.items.len(), scan.through)
        };
        assert_eq!(fill(None, 5, 1, 10), (5, None));
        assert_eq!(fill(None, 5, 1, 5), (5, None));
        assert_eq!(fill(None, 5, 1, 3), (3, Some(position(3))));
        assert_eq!(fill(Some(position(2)), 5, 1, 10), (2, Some(position(2))));
        assert_eq!(fill(Some(position(9)), 5, 1, 10), (5, Some(position(9))));
        // 3 MiB hold two of these, and one that is too large comes alone.
        assert_eq!(fill(None, 5, 1 << 20, 10), (2, Some(position(2))));
        assert_eq!(fill(None, 2, 4 << 20, 10), (1, Some(position(1))));
    }
}
