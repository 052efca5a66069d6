//! Why items of a topic are not delivered, from how it stands at all nodes.

use forebay_engine::Standing;
use forebay_proto::v1::BlockerCode;

use super::words::{FoundBlocker, are, consumer, items, node};
use crate::gather::{NodeStanding, UnservedShard};

/// Shards that have a sentence of their own for one reason.
const NAMED_MAX: usize = 20;

/// Causes that keep the topic's items, in the order in which they would have to go, and what becomes of the
/// items then.
pub fn blockers(nodes: &[NodeStanding], unserved: &[UnservedShard]) -> Vec<FoundBlocker> {
    let mut found: Vec<FoundBlocker> = unserved.iter().take(NAMED_MAX).map(self::unserved).collect();
    if let Some(rest) = unserved.len().checked_sub(NAMED_MAX + 1) {
        let sentence = format!("{} more shards are served by no node that answers.", rest + 1);
        found.push(FoundBlocker::new(BlockerCode::ShardUnserved, sentence));
    }
    let all = || nodes.iter().flat_map(|at| at.shards.iter().map(move |shard| (&*at.node, shard)));
    for of_shard in [held_back, too_many_leased, head_outstanding] {
        found.extend(all().filter_map(|(name, shard)| of_shard(name, shard)).take(NAMED_MAX));
    }
    found.extend(nodes.iter().filter_map(|at| no_consumer(at, nodes)));
    found.extend(nodes.iter().filter_map(deliverable));
    if all().all(|(_, shard)| shard.ready == 0) {
        found.extend(nothing_ready(nodes));
    }
    let dead: u64 = all().map(|(_, shard)| shard.dead).sum();
    if dead > 0 {
        let (letters, keep) = if dead == 1 { ("letter", "It is") } else { ("letters", "They are") };
        let sentence =
            format!("There {} {dead} dead {letters}. {keep} not delivered unless redriven.", are(dead));
        found.push(FoundBlocker { count: Some(dead), ..FoundBlocker::new(BlockerCode::Dead, sentence) });
    }
    found
}

/// No node that answers serves a shard.
pub fn unserved(it: &UnservedShard) -> FoundBlocker {
    let UnservedShard { shard, owner } = it;
    let who = match &**owner {
        "" => "It has no owner that is known.".to_owned(),
        owner => format!("Its last known owner is node {owner}."),
    };
    let sentence = format!(
        "Shard {shard} is served by no node that answers, so nobody knows what it holds of the topic. {who}"
    );
    let found = FoundBlocker::new(BlockerCode::ShardUnserved, sentence);
    FoundBlocker { by: owner.clone(), shard: Some(*shard), ..found }
}

/// The breaker of a shard is open, or the shard is on its way to another node.
fn held_back(name: &str, it: &Standing) -> Option<FoundBlocker> {
    let held = it.ready + it.leased + it.scheduled;
    if held == 0 {
        return None;
    }
    let (shard, name, count) = (it.shard, name.to_owned(), Some(it.ready));
    if it.handed_over {
        let sentence = format!(
            "{} hands shard {shard} over to another node. Its {} of the topic wait for that.",
            capital(&node(&name)),
            items(held)
        );
        let found = FoundBlocker::new(BlockerCode::ShardUnserved, sentence);
        return Some(FoundBlocker { by: name, shard: Some(shard), count, ..found });
    }
    let since = it.breaker.as_ref()?;
    let sentence = format!(
        "{} holds the items of shard {shard} back since {}, because the shard's database fails. {} of \
         the topic {} ready there.",
        capital(&node(&name)),
        since,
        items(it.ready),
        are(it.ready)
    );
    let found = FoundBlocker::new(BlockerCode::BreakerOpen, sentence);
    Some(FoundBlocker { since: Some(*since), by: name, shard: Some(shard), count, ..found })
}

/// A shard leases no more.
fn too_many_leased(name: &str, it: &Standing) -> Option<FoundBlocker> {
    let why = it.lease_refusal.as_ref().filter(|_| it.is_open())?;
    let sentence = format!("{} leases no more items of shard {}: {why}.", capital(&node(name)), it.shard);
    let found = FoundBlocker::new(BlockerCode::TooManyLeased, sentence);
    let until = it.next_lease.as_ref().map(|(_, ends_at)| *ends_at);
    Some(FoundBlocker { until, by: name.to_owned(), shard: Some(it.shard), count: Some(it.leased), ..found })
}

/// The first item of a shard is not known yet.
fn head_outstanding(name: &str, it: &Standing) -> Option<FoundBlocker> {
    if !it.head_unknown || !it.is_open() {
        return None;
    }
    let sentence = format!(
        "{} has not read the first of {} in shard {} yet. It does so once somebody asks for the topic, and \
         deliveries wait for it.",
        capital(&node(name)),
        items(it.ready),
        it.shard
    );
    let found = FoundBlocker::new(BlockerCode::HeadOutstanding, sentence);
    Some(FoundBlocker { by: name.to_owned(), shard: Some(it.shard), count: Some(it.ready), ..found })
}

/// Nobody asks a node that has something, or the items do not come to whoever does.
pub(crate) fn no_consumer(at: &NodeStanding, nodes: &[NodeStanding]) -> Option<FoundBlocker> {
    let ready = at.ready();
    if ready == 0 || at.waiting() > 0 || at.leased() > 0 {
        return None;
    }
    let mut sentence = format!(
        "{} {} ready at {}, and nobody takes from it: no dequeue call waits for the topic there, or at a \
         node that gets items from it, and none of its items is leased.",
        items(ready),
        are(ready),
        node(&at.node)
    );
    let fronts = nodes.iter().filter(|front| front.polls > 0);
    let cut_off = fronts.filter_map(|front| Some((front, front.missing_sources.get(&at.node)?)));
    for (NodeStanding { node: name, polls, .. }, why) in cut_off.take(NAMED_MAX) {
        let wait = if *polls == 1 {
            "1 dequeue call waits".to_owned()
        } else {
            format!("{polls} dequeue calls wait")
        };
        sentence += &format!(" {wait} at {}, to which its items do not come: {why}.", node(name));
    }
    let since = at.oldest();
    let found = FoundBlocker::new(BlockerCode::NoConsumer, sentence);
    Some(FoundBlocker { since, by: at.node.clone(), count: Some(ready), ..found })
}

/// A node delivers.
pub fn deliverable(at: &NodeStanding) -> Option<FoundBlocker> {
    let (ready, waiting, leased) = (at.ready(), at.waiting(), at.leased());
    if ready == 0 || waiting + leased == 0 {
        return None;
    }
    let how = match waiting {
        0 => format!("{} {} leased. The next dequeue call gets the first.", items(leased), are(leased)),
        1 => "1 dequeue call waits, and gets the first now.".to_owned(),
        _ => format!("{waiting} dequeue calls wait, and get the first now."),
    };
    let sentence = format!("{} {} ready at {}. {how}", items(ready), are(ready), node(&at.node));
    let found = FoundBlocker::new(BlockerCode::Deliverable, sentence);
    Some(FoundBlocker { since: at.oldest(), by: at.node.clone(), count: Some(ready), ..found })
}

/// Findings if nothing is ready anywhere.
fn nothing_ready(nodes: &[NodeStanding]) -> Vec<FoundBlocker> {
    let all = || nodes.iter().flat_map(|at| &at.shards);
    let mut found = Vec::new();
    let leased: u64 = all().map(|it| it.leased).sum();
    if leased > 0 {
        let next = all().filter_map(|it| it.next_lease.as_ref()).min_by_key(|(_, ends_at)| *ends_at);
        let (by, until) = next.cloned().unzip();
        let mut sentence = format!("{} {} leased.", items(leased), are(leased));
        if let (Some(by), Some(until)) = (&by, until) {
            sentence += &format!(" The first lease is that of {}, and ends at {}.", consumer(by), until);
        }
        let by = by.unwrap_or_default();
        found.push(FoundBlocker {
            until,
            by,
            count: Some(leased),
            ..FoundBlocker::new(BlockerCode::Leased, sentence)
        });
    }
    let scheduled: u64 = all().map(|it| it.scheduled).sum();
    if scheduled > 0 {
        let until = all().filter_map(|it| it.next_due_at).min();
        let when = until.map(|at| format!(" The first is due at {}.", at)).unwrap_or_default();
        let wait = if scheduled == 1 { "waits" } else { "wait" };
        let sentence = format!("{} {wait} until due.{when}", items(scheduled));
        let found_one = FoundBlocker::new(BlockerCode::Scheduled, sentence);
        found.push(FoundBlocker { until, count: Some(scheduled), ..found_one });
    }
    if found.is_empty() {
        let sentence = "No shard that answers has an item of the topic that could be delivered.".to_owned();
        found.push(FoundBlocker::new(BlockerCode::NothingReady, sentence));
    }
    found
}

/// Facts of one shard that more than one sentence needs.
trait Facts {
    /// Its items may be leased.
    fn is_open(&self) -> bool;
}

impl Facts for Standing {
    fn is_open(&self) -> bool {
        self.ready > 0 && self.breaker.is_none() && !self.handed_over
    }
}

impl NodeStanding {
    /// Ready items of shards whose items may be leased.
    fn ready(&self) -> u64 {
        let free = |it: &&Standing| it.is_open() && it.lease_refusal.is_none();
        self.shards.iter().filter(free).map(|it| it.ready).sum()
    }

    fn leased(&self) -> u64 {
        self.shards.iter().map(|it| it.leased).sum()
    }

    fn waiting(&self) -> u64 {
        self.shards.iter().map(|it| it.waiting).max().unwrap_or(0)
    }

    fn oldest(&self) -> Option<forebay_types::Timestamp> {
        self.shards.iter().filter_map(|it| it.head_ready_at).min()
    }
}

/// With a capital letter in front.
pub fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_types::{ShardId, Timestamp};

    use super::*;

    fn standing(shard: u32) -> Standing {
        Standing {
            shard: ShardId(shard),
            ready: 0,
            leased: 0,
            scheduled: 0,
            dead: 0,
            head_ready_at: None,
            head_unknown: false,
            breaker: None,
            handed_over: false,
            lease_refusal: None,
            waiting: 0,
            next_lease: None,
            next_due_at: None,
        }
    }

    fn at(node: &str, shards: Vec<Standing>) -> NodeStanding {
        NodeStanding { node: node.to_owned(), shards, polls: 0, missing_sources: BTreeMap::new() }
    }

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + seconds * 1_000_000)
    }

    fn codes(nodes: &[NodeStanding], unserved: &[UnservedShard]) -> Vec<BlockerCode> {
        blockers(nodes, unserved).into_iter().map(|found| found.code).collect()
    }

    fn only(one: Standing) -> FoundBlocker {
        let mut found = blockers(&[at("a", vec![one])], &[]);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_topic_without_items_says_so_and_names_shards_that_may_have_some() {
        assert_eq!(codes(&[at("", vec![standing(1)])], &[]), [BlockerCode::NothingReady]);
        let gone = UnservedShard { shard: ShardId(3), owner: "b".into() };
        let found = blockers(&[at("a", vec![standing(1)])], &[gone]);
        assert_eq!(found[0].code, BlockerCode::ShardUnserved);
        assert!(found[0].sentence.contains("Shard 3") && found[0].sentence.contains("node b"), "{found:?}");
    }

    #[test]
    fn what_would_have_to_go_first_comes_first() {
        let breaker = Some(time(0));
        let down = Standing { ready: 5, breaker, ..standing(1) };
        let full = Standing { ready: 4, lease_refusal: Some("the limit".into()), ..standing(2) };
        let unread = Standing { ready: 3, head_unknown: true, ..standing(3) };
        let idle = Standing { ready: 2, head_ready_at: Some(time(1)), ..standing(4) };
        let dies = Standing { dead: 7, ..standing(5) };
        let nodes = [at("a", vec![idle, unread, full, down]), at("b", vec![dies])];
        let gone = [UnservedShard { shard: ShardId(9), owner: String::new() }];
        let expected = [
            BlockerCode::ShardUnserved,
            BlockerCode::BreakerOpen,
            BlockerCode::TooManyLeased,
            BlockerCode::HeadOutstanding,
            BlockerCode::NoConsumer,
            BlockerCode::Dead,
        ];
        assert_eq!(codes(&nodes, &gone), expected);
        let found = blockers(&nodes, &gone);
        let text = "Node a holds the items of shard 1 back since 2023-11-14T22:13:20Z, because the shard's \
                    database fails. 5 items of the topic are ready there.";
        assert_eq!(found[1].sentence, text);
        assert_eq!(
            (found[1].since, found[1].shard, found[1].count),
            (Some(time(0)), Some(ShardId(1)), Some(5))
        );
        assert_eq!((found[4].count, found[4].since), (Some(5), Some(time(1))), "those that could be leased");
    }

    #[test]
    fn a_node_without_consumers_is_named_beside_one_that_delivers() {
        let nodes = [
            at("a", vec![Standing { ready: 1, ..standing(1) }]),
            at("b", vec![Standing { ready: 2, waiting: 3, ..standing(2) }]),
        ];
        assert_eq!(codes(&nodes, &[]), [BlockerCode::NoConsumer, BlockerCode::Deliverable]);
        assert_eq!(blockers(&nodes, &[])[0].by, "a");
        let busy = only(Standing { ready: 2, leased: 1, ..standing(1) });
        assert_eq!((busy.code, busy.count), (BlockerCode::Deliverable, Some(2)));
    }

    #[test]
    fn calls_that_wait_where_the_items_do_not_come_are_named() {
        let cut_off = NodeStanding {
            polls: 2,
            missing_sources: BTreeMap::from([("a".to_owned(), "it answers late".to_owned())]),
            ..at("b", Vec::new())
        };
        let has_some = at("a", vec![Standing { ready: 3, ..standing(1) }]);
        let found = blockers(&[has_some.clone(), cut_off.clone()], &[]);
        assert_eq!((found.len(), found[0].code, &*found[0].by), (1, BlockerCode::NoConsumer, "a"));
        let said = "2 dequeue calls wait at node b, to which its items do not come: it answers late.";
        assert!(found[0].sentence.ends_with(said), "{}", found[0].sentence);
        // Nothing is said of it where somebody takes them, or nobody waits there.
        let taken = at("a", vec![Standing { ready: 3, leased: 1, ..standing(1) }]);
        assert_eq!(codes(&[taken, cut_off.clone()], &[]), [BlockerCode::Deliverable]);
        let idle = NodeStanding { polls: 0, ..cut_off };
        assert!(!blockers(&[has_some, idle], &[])[0].sentence.contains("node b"));
    }

    #[test]
    fn leased_and_scheduled_items_say_when_they_may_come() {
        let next_lease = Some(("w7".to_owned(), time(60)));
        let leased = only(Standing { leased: 3, next_lease, ..standing(1) });
        assert_eq!((leased.code, leased.until, &*leased.by), (BlockerCode::Leased, Some(time(60)), "w7"));
        let text =
            "3 items are leased. The first lease is that of consumer w7, and ends at 2023-11-14T22:14:20Z.";
        assert_eq!(leased.sentence, text);
        let later = only(Standing { scheduled: 1, next_due_at: Some(time(5)), ..standing(1) });
        assert_eq!((later.code, later.until, later.count), (BlockerCode::Scheduled, Some(time(5)), Some(1)));
    }

    #[test]
    fn a_shard_on_its_way_to_another_node_is_said_to_be() {
        let moving = Standing { ready: 2, handed_over: true, waiting: 1, ..standing(4) };
        let found = only(moving);
        assert_eq!((found.code, found.shard), (BlockerCode::ShardUnserved, Some(ShardId(4))));
        assert!(found.sentence.contains("hands shard 4 over"), "{}", found.sentence);
    }
}
