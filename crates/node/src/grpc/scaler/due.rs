//! Scheduled items that are due soon: whoever is to handle them can be started in time.

use forebay_edge::rpc::fields;
use forebay_engine::{ItemState, ItemsCall, RETRY_AFTER};
use forebay_operators::{calls::Admin, gather::ItemScan};
use forebay_types::{Reason, Refusal, Timestamp, TopicName};

/// Items of one page.
const PAGE_ITEMS: u64 = 1_000;
/// Bytes that they may take.
const PAGE_BYTES: usize = 4 << 20;

/// How many scheduled items of a topic are due until a time: `most` at most, in all shards.
pub async fn count(admin: &Admin, name: &TopicName, until: Timestamp, most: u64) -> Result<u64, Refusal> {
    let (mut count, mut after) = (0, None);
    loop {
        let _look = admin.gather.admit(&name.namespace, PAGE_BYTES)?;
        let page = ItemsCall {
            name: name.clone(),
            state: ItemState::Scheduled,
            after,
            limit: usize::try_from(PAGE_ITEMS.min(most - count)).unwrap_or(usize::MAX),
            payload_max: 0,
            filter: String::new(),
            now: admin.clock.wall(),
        };
        let ItemScan { items, through, shards, .. } = admin.gather.items(&page).await?;
        let incomplete = admin.gather.incomplete(&shards);
        if !incomplete.is_empty() {
            return Err(unknown(format!("shards {incomplete:?} could not be asked")));
        }
        // They come in the order in which they are due.
        let is_soon =
            |due: &prost_types::Timestamp| fields::timestamp("ready_at", due).is_ok_and(|due| due <= until);
        let soon = items.iter().take_while(|item| item.ready_at.as_ref().is_some_and(is_soon)).count();
        count += soon as u64;
        after = through;
        if soon < items.len() || after.is_none() || count >= most {
            return Ok(count);
        }
    }
}

/// Refusal for a number that can't be known: it is no smaller number.
pub fn unknown(message: String) -> Refusal {
    Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER)
}
