//! One look at all topics and prefixes of a poll.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{Monotonic, Refusal, TopicName};

use super::{
    merge::{self, AskedTopic, FETCH_BYTES_MAX, PickedItems, pick_topic},
    prefetch,
    prefix::{self, pick_prefix},
    sources::{self, Guesses},
};
use crate::{
    api::DequeueCall,
    core::{Core, fetches::PlannedFetch, policies::Eligible, timers::Timer},
    index::ShardIndex,
    planted::{Bug, on},
    shard::work::ReservedItem,
};

/// A poll for whose fetch there was no place looks again after this time: most fetches have theirs for no
/// longer. More often would cost much where many polls wait for one.
const PLACE_AFTER: Duration = Duration::from_millis(250);

/// The result of one look at a poll's topics.
pub(crate) enum Pick {
    /// These items are reserved, by shard, and these are to be fetched from other nodes.
    Found(BTreeMap<ShardIndex, Vec<ReservedItem>>, Vec<PlannedFetch>),
    /// Nothing is there, or not known yet.
    Nothing,
    /// Something is there, but a limit allows no more leases.
    Refused(Refusal),
}

/// Takes the best items of the demanded topics out of their windows. With `last`, shards whose heads are not
/// known yet are left out; otherwise their topics are.
pub(crate) fn pick(
    core: &mut Core,
    call: &DequeueCall,
    names: &[TopicName],
    guesses_from: Monotonic,
    at: Monotonic,
    last: bool,
) -> Pick {
    let guesses = Guesses { at, from: guesses_from, topics: names.len() };
    let moment = core.time.moment();
    let mut picked = PickedItems::default();
    for (number, (name, demand)) in names.iter().zip(&call.demands).enumerate() {
        if core.policies.eligible(name) != Eligible::All {
            continue;
        }
        let (is_client, is_prefix) = (call.fetch.is_none(), name.prefix().is_some());
        if !is_prefix {
            core.list(name);
        }
        // Of a prefix all that is known is handed out, also while there may be something better.
        let outstanding = !is_prefix && merge::is_outstanding(core, name, at)
            || is_client && sources::is_outstanding(core, name);
        if outstanding && !last {
            continue;
        }
        let asks_others = is_client || on(Bug::FetchPassedOn);
        let best = if asks_others { sources::best(core, name, guesses) } else { None };
        let fetch_bytes = FETCH_BYTES_MAX.max(core.settings.limits.body_bytes());
        let before = call.fetch.and_then(|fetch| fetch.before);
        let asked = AskedTopic { number, name, max_items: demand.max_items, before, call, fetch_bytes };
        let pick = if is_prefix { pick_prefix } else { pick_topic };
        pick(core, asked, best, moment, &mut picked);
        if std::mem::take(&mut picked.no_place) {
            core.timers.set(at.plus(PLACE_AFTER), Timer::Topic(name.clone()));
        }
        if picked.full {
            break;
        }
        prefetch::top_up(&mut core.slots, &mut core.ids, core.topics.parts(name));
    }
    if !picked.items.is_empty() || !picked.fetches.is_empty() {
        Pick::Found(picked.items, picked.fetches)
    } else {
        picked.refusal.map_or(Pick::Nothing, Pick::Refused)
    }
}

/// Whether a head of one of a call's topics has to be waited for.
pub(crate) fn is_any_outstanding(
    core: &mut Core,
    call: &DequeueCall,
    names: &[TopicName],
    at: Monotonic,
) -> bool {
    let is_client = call.fetch.is_none();
    let is_own = |core: &mut Core, name: &TopicName| match name.prefix() {
        Some(_) => prefix::is_outstanding(core, name),
        None => merge::is_outstanding(core, name, at),
    };
    names.iter().any(|name| is_own(core, name) || is_client && sources::is_outstanding(core, name))
}
