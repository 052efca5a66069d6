//! GetActiveTopics: topics that have a ready item, in the order of their heads.
//!
//! A namespace may have a million topics. So no call is answered in its own event: pages are put together in
//! slices, a bounded number of topics a turn, and the pages of all callers take turns.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{Monotonic, Namespace, Reason, Refusal, ShardId, Timestamp, Topic, TopicName};

use crate::{
    api::{ActiveTopic, ActiveTopics, ActiveTopicsCall, RETRY_AFTER, ShardState, TopicPosition},
    core::{
        Core,
        active_index::{ActiveIndex, WaitingPage},
        policies::Eligible,
        timers::Timer,
    },
    dispatch::prefetch::{self, BestHead},
    messages::reply::Reply,
    planted::{Bug, on},
};

/// How long a page waits for heads that have not been read yet.
const HEADS_TIMEOUT: Duration = Duration::from_secs(1);
/// Pages that may wait.
const PAGES_MAX: usize = 1_000;
/// Pages of one namespace that may wait.
const PAGES_PER_NAMESPACE_MAX: usize = 100;
/// Heads that one turn looks at, beside those that changed since the last one.
const HEADS_PER_TURN: usize = 512;
/// Unread heads of one namespace that one turn looks at again.
const UNREAD_PER_TURN: usize = 32;
/// Positions in the order of active topics that one turn searches.
const POSITIONS_PER_TURN: usize = 4_096;
/// The cost of a topic in a page, in positions.
const TOPIC_POSITIONS: usize = 2;

/// The work that one turn may still do.
struct Work {
    /// Heads.
    heads: usize,
    /// Positions in the order.
    positions: usize,
}

/// The page is put together in this turn and the next ones.
pub(crate) fn serve(core: &mut Core, call: ActiveTopicsCall, reply: Reply<ActiveTopics>) {
    let (all, mine) = core.active.pages_waiting(&call.namespace);
    let whose = if mine >= PAGES_PER_NAMESPACE_MAX { "of this namespace " } else { "" };
    if all >= PAGES_MAX || !whose.is_empty() {
        let message = format!("{all} GetActiveTopics calls wait; no more {whose}are taken on this node");
        reply.send(Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER)));
        return;
    }
    let until = core.time.monotonic().plus(HEADS_TIMEOUT);
    let searched = call.after.clone();
    core.active.push_page(WaitingPage { call, reply, until, found: Vec::new(), searched });
    core.timers.set(until, Timer::Pages);
}

/// Goes on with the pages. Changes of the shards' topics are noted already.
pub(crate) fn serve_waiting(core: &mut Core) {
    let refused = if core.active.len() > 0 { why_refused(core, core.time.monotonic()) } else { None };
    go_on(core, refused);
}

/// Goes on with the pages, or refuses them all.
fn go_on(core: &mut Core, refused: Option<Refusal>) {
    let at = core.time.monotonic();
    // To let go of many topics takes time, and is for nobody to wait for.
    let unused = core.active.take_unused(at);
    if !unused.is_empty() {
        tokio::task::spawn_blocking(move || drop(unused));
    }
    if core.active.len() == 0 {
        return core.active.set_busy(false);
    }
    let missing: Vec<ShardId> =
        core.slots.iter().filter(|slot| !slot.is_merged()).map(|slot| slot.id).collect();
    let nodes = core.remote.addresses();
    let mut work = Work { heads: HEADS_PER_TURN, positions: POSITIONS_PER_TURN };
    let mut current: BTreeMap<Namespace, bool> = BTreeMap::new();
    let mut busy = false;
    for _ in 0..core.active.len() {
        if work.heads == 0 || work.positions == 0 {
            busy = true;
            break;
        }
        let Some(mut page) = core.active.pop_page() else { break };
        if let Some(refusal) = &refused {
            page.reply.send(Err(refusal.clone()));
            continue;
        }
        let namespace = page.call.namespace.clone();
        let is_current = match current.get(&namespace) {
            Some(is_current) => *is_current,
            None => refresh(core, &namespace, &mut work),
        };
        current.insert(namespace.clone(), is_current);
        let is_current = is_current && !core.listing.is_under_way();
        if is_current && search(core, &mut page, &mut work) {
            answer(page, missing.clone(), nodes.clone());
        } else if page.until <= at || core.stopping.is_stopping() {
            let message = "some topics have not been read yet";
            let refusal = Refusal::new(Reason::ShardUnavailable, message).retry_after(RETRY_AFTER);
            page.reply.send(Err(refusal));
        } else if !page.reply.is_closed() {
            busy |= is_current || core.active.get(&namespace).is_none_or(|index| index.visits.has_stale());
            core.active.push_page(page);
        }
    }
    core.active.set_busy(busy);
}

/// Why no page can be given now: of a shard that another node may own by now, nobody knows what is active.
fn why_refused(core: &Core, at: Monotonic) -> Option<Refusal> {
    let refusal = |reason, message: String| Some(Refusal::new(reason, message).retry_after(RETRY_AFTER));
    // Other nodes may have what this one has not.
    let has_others = core.remote.has_nodes();
    let mut merged = core.slots.iter().filter(|slot| slot.is_merged()).peekable();
    if merged.peek().is_some() {
        let doubtful = merged.find(|slot| slot.owned().is_some_and(|shard| !shard.is_trusted(at)))?;
        let message = format!("shard {} has not confirmed lately that this node owns it", doubtful.id);
        return refusal(Reason::ShardUnavailable, message);
    }
    if has_others {
        return None;
    }
    if core.slots.iter().any(|slot| slot.holding.is_some() || slot.state != ShardState::Waiting) {
        return refusal(Reason::ShardUnavailable, "no shard of this node answers".to_owned());
    }
    refusal(Reason::NotOwner, "other nodes own all shards of this node".to_owned())
}

fn answer(page: WaitingPage, missing: Vec<ShardId>, nodes: Vec<String>) {
    let WaitingPage { call, reply, mut found, .. } = page;
    let more = call.named.is_empty() && found.len() > call.limit;
    if more {
        found.truncate(call.limit);
    }
    let next = found.last().filter(|_| more).map(|last| last.position.clone());
    reply.send(Ok(ActiveTopics { topics: found, next, missing, nodes }));
}

/// Searches the order for topics of the page. Returns whether the page is whole.
fn search(core: &Core, page: &mut WaitingPage, work: &mut Work) -> bool {
    let namespace = &page.call.namespace;
    if !page.call.named.is_empty() {
        page.found = named(core, &page.call);
        return true;
    }
    if core.policies.eligible(&TopicName::new(namespace.clone(), "")) != Eligible::All {
        return true;
    }
    let Some(index) = core.active.get(namespace) else { return true };
    for position in index.after(page.searched.clone()) {
        if work.positions == 0 {
            break;
        }
        work.positions -= 1;
        page.searched = Some(position.clone());
        if position.topic.starts_with(&page.call.prefix) || on(Bug::PrefixIgnored) {
            page.found.push(active_topic(core, namespace, position));
            work.positions = work.positions.saturating_sub(TOPIC_POSITIONS);
            if page.found.len() > page.call.limit {
                return true;
            }
        }
    }
    index.after(page.searched.clone()).next().is_none()
}

/// The topics that a call names. Of one that is not active nothing is ready.
fn named(core: &Core, call: &ActiveTopicsCall) -> Vec<ActiveTopic> {
    let is_paused = core.policies.eligible(&TopicName::new(call.namespace.clone(), "")) != Eligible::All;
    let index = core.active.get(&call.namespace).filter(|_| !is_paused);
    let entry = |topic: &Topic| {
        let position = index.and_then(|index| index.position(topic));
        let (best_priority, oldest_ready_at) = position.unwrap_or((i32::MAX, Timestamp::MAX));
        let at = TopicPosition { best_priority, oldest_ready_at, topic: topic.clone() };
        let found = active_topic(core, &call.namespace, &at);
        ActiveTopic { ready: if position.is_some() { found.ready.max(1) } else { 0 }, ..found }
    };
    call.named.iter().map(entry).collect()
}

/// The entry of a topic in a page. Shards that take no part in the merge are left out, as in the order.
fn active_topic(core: &Core, namespace: &Namespace, position: &TopicPosition) -> ActiveTopic {
    let name = TopicName { namespace: namespace.clone(), topic: position.topic.clone() };
    let mut topic = ActiveTopic { position: position.clone(), ready: 0, leased: 0, scheduled: 0 };
    for part in core.topics.parts(&name) {
        let slot = &core.slots[part.shard];
        let shard = slot.owned().filter(|_| slot.is_merged());
        let totals = shard.and_then(|shard| shard.totals(part.topic)).unwrap_or_default();
        topic.ready += totals.ready;
        topic.leased += totals.leased;
        topic.scheduled += totals.scheduled;
    }
    topic
}

/// Brings a slice of a namespace's order up to date. Returns whether all of it is.
fn refresh(core: &mut Core, namespace: &Namespace, work: &mut Work) -> bool {
    let at = core.time.monotonic();
    let mut index = core.active.take(namespace);
    // Topics are looked at as fast as they change: else a busy namespace would never have its answer.
    let most = work.heads + index.visits.take_marked();
    let slice = |after: Option<&Topic>| {
        core.topics.of_namespace(namespace, after).take(most).map(|name| name.topic.clone()).collect()
    };
    let topics = index.visits.next(most, UNREAD_PER_TURN, slice);
    work.heads = work.heads.saturating_sub(topics.len());
    for topic in topics {
        look_at(core, &mut index, namespace, topic);
    }
    let is_current = index.visits.is_current();
    if core.topics.count_of(namespace) > 0 || !is_current {
        core.active.put(namespace.clone(), index, at);
    }
    is_current
}

/// Puts a topic where its head belongs. Begins to read a head that is not known.
fn look_at(core: &mut Core, index: &mut ActiveIndex, namespace: &Namespace, topic: Topic) {
    let name = TopicName { namespace: namespace.clone(), topic: topic.clone() };
    // No page is given before all topics are listed.
    let BestHead::Known(head) = prefetch::best_head(core, &name) else {
        return index.visits.set_unread(topic);
    };
    let position = head.map(|head| TopicPosition {
        best_priority: head.priority,
        oldest_ready_at: Timestamp::from_micros(head.rank + i64::from(on(Bug::OldestReadyAtWrong))),
        topic: topic.clone(),
    });
    index.set(topic, position);
}

#[cfg(test)]
mod tests {
    use forebay_types::TopicId;
    use tokio::sync::oneshot::{self, error::TryRecvError};

    use super::*;
    use crate::{core::topics::TopicPart, index::ShardIndex};

    /// A node that knows so many topics, of a shard that is not merged.
    fn core_with_topics(topics: usize) -> Core {
        let mut core = Core::for_test();
        for id in 0..topics {
            let part = TopicPart { shard: ShardIndex(0), topic: TopicId(id as u32) };
            core.topics.add_part(TopicName::new("ns", format!("t{id:06}")), part);
        }
        core
    }

    fn call(prefix: &str, limit: usize) -> ActiveTopicsCall {
        ActiveTopicsCall {
            namespace: "ns".into(),
            limit,
            after: None,
            prefix: prefix.into(),
            named: Vec::new(),
        }
    }

    fn ask(core: &mut Core, call: ActiveTopicsCall) -> oneshot::Receiver<Result<ActiveTopics, Refusal>> {
        let (reply, answer) = Reply::channel();
        serve(core, call, reply);
        answer
    }

    /// Puts the topics into the order, each with its number as the priority.
    fn activate(core: &mut Core, topics: usize) {
        let mut index = ActiveIndex::default();
        index.visits.take_in(Vec::new(), true);
        for id in 0..topics {
            let topic: Topic = format!("t{id:06}").into();
            let (best_priority, oldest_ready_at) = (id as i32, Timestamp::MIN);
            index.set(topic.clone(), Some(TopicPosition { best_priority, oldest_ready_at, topic }));
        }
        let at = core.time.monotonic();
        core.active.put("ns".into(), index, at);
    }

    #[test]
    fn a_turn_looks_at_a_slice_of_a_namespace() {
        let mut core = core_with_topics(2 * HEADS_PER_TURN + 1);
        let mut answer = ask(&mut core, call("", 1));
        for looked_at in [HEADS_PER_TURN, 2 * HEADS_PER_TURN] {
            go_on(&mut core, None);
            let last = format!("t{:06}", looked_at - 1);
            let index = core.active.get(&"ns".into()).unwrap();
            assert_eq!(index.visits.next_to_take_in(), Some(Some(&last.into())));
            assert!(core.active.is_busy() && answer.try_recv() == Err(TryRecvError::Empty));
        }
        go_on(&mut core, None);
        let page = answer.try_recv().unwrap().unwrap();
        assert!(page.topics.is_empty() && !page.missing.is_empty(), "its shard is not merged");
        assert!(!core.active.is_busy());
    }

    #[test]
    fn what_changes_in_a_turn_is_looked_at_in_that_turn() {
        let mut core = core_with_topics(4 * HEADS_PER_TURN);
        activate(&mut core, 4 * HEADS_PER_TURN);
        let names: Vec<TopicName> = core.topics.all_after(None).cloned().collect();
        names.iter().take(3 * HEADS_PER_TURN).for_each(|name| core.active.mark_stale(name));
        let mut answer = ask(&mut core, call("", 10_000));
        go_on(&mut core, None);
        assert_eq!(answer.try_recv().unwrap().unwrap().topics.len(), HEADS_PER_TURN);
    }

    #[test]
    fn a_turn_searches_a_slice_of_the_order() {
        let topics = 3 * POSITIONS_PER_TURN / 2;
        let mut core = core_with_topics(topics);
        activate(&mut core, topics);
        let last = format!("t{:06}", topics - 1);
        let mut answer = ask(&mut core, call(&last, 1));
        let mut other = ask(&mut core, call("t000000", 1));
        go_on(&mut core, None);
        assert!(core.active.is_busy() && answer.try_recv() == Err(TryRecvError::Empty));
        go_on(&mut core, None);
        assert_eq!(other.try_recv().unwrap_err(), TryRecvError::Empty, "its search is as long");
        while core.active.is_busy() {
            go_on(&mut core, None);
        }
        let page = answer.try_recv().unwrap().unwrap();
        assert_eq!((&*page.topics[0].position.topic, page.topics.len(), page.next), (&*last, 1, None));
        assert_eq!(other.try_recv().unwrap().unwrap().topics.len(), 1);
    }

    #[test]
    fn a_node_that_serves_no_shard_gives_no_page() {
        let mut core = core_with_topics(0);
        for (state, reason) in
            [(ShardState::Starting, Reason::ShardUnavailable), (ShardState::Waiting, Reason::NotOwner)]
        {
            core.slots[ShardIndex(0)].state = state;
            let mut answer = ask(&mut core, call("", 1));
            serve_waiting(&mut core);
            assert_eq!(answer.try_recv().unwrap().unwrap_err().reason, reason);
        }
    }

    #[test]
    fn so_many_pages_wait_and_no_more() {
        let mut core = core_with_topics(1);
        let mut answers: Vec<_> =
            (0..=PAGES_PER_NAMESPACE_MAX).map(|_| ask(&mut core, call("", 1))).collect();
        let refusal = answers.pop().unwrap().try_recv().unwrap().unwrap_err();
        assert_eq!(refusal.reason, Reason::Overloaded);
        assert!(refusal.message.contains("of this namespace"), "{}", refusal.message);
        for namespace in 0..PAGES_MAX / PAGES_PER_NAMESPACE_MAX - 1 {
            let namespace: Namespace = format!("other-{namespace}").into();
            answers.extend(
                (0..PAGES_PER_NAMESPACE_MAX).map(|_| {
                    ask(&mut core, ActiveTopicsCall { namespace: namespace.clone(), ..call("", 1) })
                }),
            );
        }
        let refused = ask(&mut core, ActiveTopicsCall { namespace: "last".into(), ..call("", 1) }).try_recv();
        assert!(refused.unwrap().unwrap_err().message.ends_with("no more are taken on this node"));
        go_on(&mut core, None);
        assert!(answers.iter_mut().all(|answer| answer.try_recv().is_ok()) && core.active.len() == 0);
        let kept = ["ns", "other-0"].map(|namespace| core.active.get(&namespace.into()).is_some());
        assert_eq!(kept, [true, false], "nothing is kept for a namespace without topics");
    }
}
