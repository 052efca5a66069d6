//! ListItems, GetItem and CancelItems: items as they are stored, without a lease.

use std::collections::BTreeMap;

use bytes::Bytes;
use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{
    client::{Client, miscounted},
    durations::time_from_proto,
    error::Error,
};

/// Where an item is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemState {
    /// It could be leased.
    Ready,
    /// It is leased.
    Leased,
    /// It is not due yet.
    Scheduled,
    /// It is a dead letter.
    Dead,
}

/// Which items to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemListQuery {
    /// The topic.
    pub topic: String,
    /// Which of its items.
    pub state: ItemState,
    /// Only those that pass it, as `age > 1h AND priority <= 5`; empty: all.
    pub filter: String,
    /// With headers, metadata and the payload.
    pub full: bool,
    /// At most so many bytes of each payload, and 256 KiB at most; 0: none, or 1 KiB if `full`.
    pub max_payload_bytes: u32,
    /// Items of the page, at most 1,000; 0: 100.
    pub page_size: u32,
    /// The last page's [`ItemList::next`]; empty: the first page.
    pub page_token: String,
}

/// A page of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemList {
    /// The items.
    pub items: Vec<StoredItem>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// Shards that could not be asked.
    pub incomplete_shards: Vec<u32>,
}

/// An item as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// Its id.
    pub id: String,
    /// Its namespace.
    pub namespace: String,
    /// Its topic.
    pub topic: String,
    /// Where it is in its life. `None`: that is not known to this program.
    pub state: Option<ItemState>,
    /// Smaller numbers are delivered first.
    pub priority: i32,
    /// Deliveries that have begun.
    pub attempt: u32,
    /// Deliveries that have failed.
    pub failures: u32,
    /// How often it was redriven.
    pub redrives: u32,
    /// So many may fail.
    pub max_attempts: u32,
    /// When it was enqueued.
    pub enqueued_at: Option<Timestamp>,
    /// When it became ready, or will.
    pub ready_at: Option<Timestamp>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// It needs no ack.
    pub at_most_once: bool,
    /// Its payload, perhaps cut.
    pub payload: Bytes,
    /// Bytes of the whole payload.
    pub payload_size: u64,
    /// Its metadata.
    pub metadata: Bytes,
    /// Its headers.
    pub headers: BTreeMap<String, String>,
    /// Its lease.
    pub lease: Option<Lease>,
    /// How it died.
    pub death: Option<Death>,
    /// Its last failed deliveries, the latest first, at most five. In lists only if they are `full`.
    pub last_failures: Vec<FailedDelivery>,
    /// Why what is stored of it can't be read. Attempts, times and headers are unknown then. Empty: it can.
    pub unreadable: String,
}

/// A delivery in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Who has the item. May be empty.
    pub consumer: String,
    /// When the delivery began.
    pub leased_at: Option<Timestamp>,
    /// When the lease ends.
    pub ends_at: Option<Timestamp>,
}

/// A delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDelivery {
    /// Its number, from 1.
    pub attempt: u32,
    /// Who had the item. May be empty.
    pub consumer: String,
    /// When it began.
    pub leased_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// `nacked`, `lease ended` or `dead-lettered`.
    pub cause: String,
    /// What the nack said, at most 256 B of it. May be empty.
    pub reason: String,
}

/// The end of an item that became a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// `nacked`, `lease ended`, `dead-lettered` or `expired while failing`.
    pub cause: String,
    /// What the last nack said. May be empty.
    pub reason: String,
    /// When.
    pub died_at: Option<Timestamp>,
    /// When it is deleted. `None`: never.
    pub kept_until: Option<Timestamp>,
}

/// Which items are to be removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CancelQuery {
    /// Their ids, at most 1,000.
    pub item_ids: Vec<String>,
    /// Why, for the log of the node.
    pub reason: String,
    /// Only look where they are.
    pub dry_run: bool,
}

impl Client {
    /// Removes items, wherever they are. One result per item: the state in which it was. The receipts of
    /// leased ones are over then.
    pub async fn cancel_items(&self, query: CancelQuery) -> Result<Vec<Result<ItemState, Error>>, Error> {
        let CancelQuery { item_ids, reason, dry_run } = query;
        let members = item_ids.len();
        let (namespace, request_id) = (self.config.namespace.clone(), self.rng.request_id());
        let request = v1::CancelItemsRequest { namespace, item_ids, reason, dry_run, request_id };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.cancel_items(request).await }
            })
            .await?;
        if answer.results.len() != members {
            return Err(miscounted(members, answer.results.len()));
        }
        let result = |it: v1::CancelItemResult| match &it.error {
            Some(error) => Err(Error::of_member(error)),
            // A state of a later release stands for any: the item is gone.
            None => Ok(state_of(it.state()).unwrap_or(ItemState::Ready)),
        };
        Ok(answer.results.into_iter().map(result).collect())
    }

    /// One page of the items of a topic.
    pub async fn list_items(&self, query: ItemListQuery) -> Result<ItemList, Error> {
        let state = match query.state {
            ItemState::Ready => v1::ItemState::Ready,
            ItemState::Leased => v1::ItemState::Leased,
            ItemState::Scheduled => v1::ItemState::Scheduled,
            ItemState::Dead => v1::ItemState::Dead,
        };
        let request = v1::ListItemsRequest {
            namespace: self.config.namespace.clone(),
            topic: query.topic,
            state: state.into(),
            view: view(query.full),
            max_payload_bytes: query.max_payload_bytes,
            page_size: query.page_size,
            page_token: query.page_token,
            filter: query.filter,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_items(request).await }
            })
            .await?;
        Ok(ItemList {
            items: answer.items.into_iter().map(item).collect(),
            next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
            incomplete_shards: answer.incomplete_shards,
        })
    }

    /// One item, with at most so many bytes of its payload: at most 256 KiB, and 1 KiB if that is 0.
    pub async fn item(&self, item_id: &str, max_payload_bytes: u32) -> Result<StoredItem, Error> {
        let request = v1::GetItemRequest {
            namespace: self.config.namespace.clone(),
            item_id: item_id.to_owned(),
            view: view(true),
            max_payload_bytes,
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.get_item(request).await }
            })
            .await?;
        Ok(item(answer.item.unwrap_or_default()))
    }
}

fn view(full: bool) -> i32 {
    if full { v1::ItemView::Full } else { v1::ItemView::Basic }.into()
}

pub(super) const fn state_of(state: v1::ItemState) -> Option<ItemState> {
    match state {
        v1::ItemState::Ready => Some(ItemState::Ready),
        v1::ItemState::Leased => Some(ItemState::Leased),
        v1::ItemState::Scheduled => Some(ItemState::Scheduled),
        v1::ItemState::Dead => Some(ItemState::Dead),
        v1::ItemState::Unspecified => None,
    }
}

fn item(item: v1::Item) -> StoredItem {
    let state = state_of(item.state());
    let death = |death: v1::ItemDeath| Death {
        cause: death.cause,
        reason: death.reason,
        died_at: death.died_at.map(time_from_proto),
        kept_until: death.kept_until.map(time_from_proto),
    };
    let lease = |lease: v1::ItemLease| Lease {
        consumer: lease.consumer,
        leased_at: lease.leased_at.map(time_from_proto),
        ends_at: lease.ends_at.map(time_from_proto),
    };
    let failure = |failure: v1::ItemFailure| FailedDelivery {
        attempt: failure.attempt,
        consumer: failure.consumer,
        leased_at: failure.leased_at.map(time_from_proto),
        ended_at: failure.ended_at.map(time_from_proto),
        cause: failure.cause,
        reason: failure.reason,
    };
    StoredItem {
        id: item.item_id,
        namespace: item.namespace,
        topic: item.topic,
        state,
        priority: item.priority,
        attempt: item.attempt,
        failures: item.failures,
        redrives: item.redrives,
        max_attempts: item.max_attempts,
        enqueued_at: item.enqueued_at.map(time_from_proto),
        ready_at: item.ready_at.map(time_from_proto),
        expires_at: item.expires_at.map(time_from_proto),
        at_most_once: item.at_most_once,
        payload: item.payload,
        payload_size: item.payload_size,
        metadata: item.metadata,
        headers: item.headers.into_iter().collect(),
        lease: item.lease.map(lease),
        death: item.death.map(death),
        last_failures: item.last_failures.into_iter().map(failure).collect(),
        unreadable: item.unreadable,
    }
}
