//! The answers of other nodes to fetches.

use std::time::Duration;

use forebay_types::{DeliveryPolicy, Monotonic, Namespace, Reason, Receipt};

use super::{delivery, fetch::late_after};
use crate::{
    api::{DeliveredItem, FetchError, FetchedItems, PeerFault},
    core::{
        Core,
        fetches::Fetch,
        polls::{LeasedItem, Share},
        timers::Timer,
    },
    invariant::broken,
    messages::delivery_guard::ReturnAction,
    planted::{Bug, on},
};

/// A node that refuses to lease items of a topic is not asked for them again before.
const REFUSED_FOR: Duration = Duration::from_millis(500);

/// The same where it had no room for the items: it has, once others have been answered.
const BUSY_FOR: Duration = Duration::from_millis(50);

/// An at-most-once item that does not expire may be handed out for so long: longer than any poll.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A node has answered, or certainly does not answer any more.
pub(crate) fn fetched(
    core: &mut Core,
    id: u64,
    address: &str,
    namespace: &Namespace,
    answer: Result<FetchedItems, FetchError>,
) {
    let at = core.time.monotonic();
    core.timers.cancel(&Timer::Fetch(id));
    let Some(mut fetch) = core.fetches.remove(id) else {
        // It was late.
        let items = answer.map(|fetched| fetched.items).unwrap_or_default();
        return give_back(core, address, namespace, items.iter());
    };
    if on(Bug::LateHandedOut) {
        give_back_late(core, &fetch, &answer);
    }
    count(match &answer {
        Ok(fetched) if fetched.items.is_empty() => "empty",
        Ok(_) => "items",
        Err(FetchError::Refused(_)) => "refused",
        Err(FetchError::Failed) => "failed",
    });
    let items = match answer {
        Ok(FetchedItems { items, left }) => {
            core.remote.fetched(&fetch.name, fetch.node, left);
            items
        }
        Err(FetchError::Refused(refusal)) => {
            let is_busy = refusal.reason == Reason::Overloaded;
            let span = if is_busy { BUSY_FOR } else { REFUSED_FOR };
            core.remote.suspend(&fetch.name, fetch.node, at.plus(span));
            Vec::new()
        }
        Err(FetchError::Failed) => {
            core.remote.was_late(&fetch.name, fetch.node, at);
            Vec::new()
        }
    };
    if core.polls.leases_mut(fetch.poll).is_none() {
        return give_back(core, address, namespace, items.iter());
    }
    let mut items = items;
    if items.len() > fetch.max_items {
        PeerFault::TooManyItems.count();
        let more = items.split_off(fetch.max_items);
        give_back(core, address, namespace, more.iter());
    }
    let took = at.since(fetch.began);
    // A consumer would have too little time.
    let (items, slow): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| took * 2 <= item.lease);
    give_back(core, address, namespace, slow.iter());
    let at_most_once = items.iter().filter(|item| item.policy == DeliveryPolicy::AtMostOnce);
    let receipts: Vec<Receipt> = at_most_once.filter_map(|item| item.receipt).collect();
    if receipts.is_empty() {
        return end(core, id, fetch.poll, fetch.demand, fetch.began, items);
    }
    if let Some(leases) = core.polls.leases_mut(fetch.poll) {
        leases.at_most_once.insert(Share::Fetch(id));
    }
    core.launcher.consume(id, address.to_owned(), namespace.clone(), receipts);
    fetch.items = items;
    core.fetches.insert(id, fetch);
}

/// The bug: items of a late answer are given back, and are a share of the poll all the same.
fn give_back_late(core: &mut Core, fetch: &Fetch, answer: &Result<FetchedItems, FetchError>) {
    let is_late = fetch.began.plus(late_after()) <= core.time.monotonic();
    if let (Ok(fetched), Some(leases), true) = (answer, core.polls.leases_mut(fetch.poll), is_late) {
        leases.left += 1;
        give_back(core, &fetch.address, &fetch.name.namespace, fetched.items.iter());
    }
}

/// At-most-once items have left their shards, or it is not certain that they have: then nobody may have them.
pub(crate) fn consumed(core: &mut Core, id: u64, consumed: Vec<bool>) {
    let Some(fetch) = core.fetches.remove(id) else { return broken("a fetch waits for its items") };
    let mut consumed = consumed.into_iter();
    let mut items = Vec::with_capacity(fetch.items.len());
    let mut lost = 0;
    for mut item in fetch.items {
        if item.policy == DeliveryPolicy::AtMostOnce {
            if !consumed.next().unwrap_or(false) && !on(Bug::ConsumedUnsurely) {
                lost += 1;
                continue;
            }
            item.receipt = None;
        }
        items.push(item);
    }
    metrics::counter!("forebay_at_most_once_lost_total").increment(lost);
    if core.polls.leases_mut(fetch.poll).is_some() {
        return end(core, id, fetch.poll, fetch.demand, fetch.began, items);
    }
    let gone = items.iter().filter(|item| item.receipt.is_none()).count();
    metrics::counter!("forebay_at_most_once_lost_total").increment(gone as u64);
    give_back(core, &fetch.address, &fetch.name.namespace, items.iter());
}

/// The share of a poll has ended.
fn end(core: &mut Core, id: u64, poll: u64, demand: usize, began: Monotonic, items: Vec<DeliveredItem>) {
    metrics::counter!("forebay_fetched_items_total").increment(items.len() as u64);
    let leased = |mut delivered: DeliveredItem| {
        let ends_at = Some(began.plus(span(&delivered)));
        let on_return = match delivered.receipt {
            Some(receipt) => ReturnAction::Release(receipt),
            None => {
                delivered.lease_expires_at = None;
                ReturnAction::Lost
            }
        };
        LeasedItem { demand, delivered, on_return, ends_at }
    };
    let items: Vec<LeasedItem> = items.into_iter().map(leased).collect();
    if items.is_empty() {
        delivery::found_nothing(core, poll);
    }
    delivery::share_ended(core, Share::Fetch(id), poll, items);
}

/// How long an item may be handed out, from the begin of its lease. Lease and expiry are times of its shard.
fn span(delivered: &DeliveredItem) -> Duration {
    let began = delivered.lease_expires_at.map(|end| end.minus(delivered.lease));
    let life = delivered.expires_at.zip(began).map(|(end, began)| end.since(began));
    let lease = delivered.receipt.map(|_| delivered.lease);
    life.into_iter().chain(lease).min().unwrap_or(LONGEST)
}

/// A node has not answered in time. Its answer, if there is one, is returned.
pub(crate) fn late(core: &mut Core, id: u64) {
    // At-most-once items are waited for.
    if core.fetches.get(id).is_none_or(|fetch| !fetch.items.is_empty()) {
        return;
    }
    let Some(fetch) = core.fetches.remove(id) else { return };
    count("late");
    core.remote.was_late(&fetch.name, fetch.node, core.time.monotonic());
    end(core, id, fetch.poll, fetch.demand, fetch.began, Vec::new());
    if on(Bug::LateHandedOut) {
        core.fetches.insert(id, fetch);
    }
}

/// Returns deliveries that certainly reached nobody.
fn give_back<'a>(
    core: &Core,
    address: &str,
    namespace: &Namespace,
    items: impl Iterator<Item = &'a DeliveredItem>,
) {
    let receipts: Vec<Receipt> = items.filter_map(|item| item.receipt).collect();
    if !receipts.is_empty() {
        core.launcher.return_items(address.to_owned(), namespace.clone(), receipts);
    }
}

fn count(outcome: &'static str) {
    metrics::counter!("forebay_fetches_total", "outcome" => outcome).increment(1);
}
