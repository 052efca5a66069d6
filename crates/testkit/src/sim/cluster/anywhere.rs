//! WAKE-ACROSS, PRIORITY-ACROSS and MESSAGES: in a cluster where all is well, any node hands out the items of
//! all, at once, in order, and with one fetch. Nodes without room to follow topics hand them out in time.

use std::{collections::BTreeSet, sync::PoisonError, time::Duration};

use forebay_engine::{Demand, DequeueCall, Settings};
use forebay_types::{Receipt, ShardId, Topic};

use crate::{
    fake::{Db, Dice},
    sim::{
        history::{Answer, Call, SentItem, What},
        node::{NAMESPACES, Port, namespace},
        process::Node,
        world::World,
    },
};

/// A poll that waits gets what another node stores within this time. Two commits and five messages take 8 ms
/// each at most.
const WOKEN_WITHIN: Duration = Duration::from_millis(90);
/// The same where nodes do not follow the topic: each second three of them are asked, by chance.
const GUESSED_WITHIN: Duration = Duration::from_secs(8);
/// All nodes have heard of all items after this time.
const HEARD_AFTER: Duration = Duration::from_millis(400);
/// Items that are stored in each shard.
const ITEMS_PER_SHARD: u64 = 6;
/// How often a poll waits at one node while another one stores an item.
const WAKES: usize = 4;
/// From this round on a node has been offered an item before, and its fetch was lost.
const WAKES_IN_VAIN: usize = 2;
/// All nodes have heard of a poll that waits after this time.
const POLL_HEARD_AFTER: Duration = Duration::from_millis(300);
/// A node whose fetch was lost asks the other one again after this time.
const ASKS_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Stores items at nodes, and polls for them at others.
pub async fn check(world: &World, nodes: &[Node], mut dice: Dice) {
    // Where all nodes are drained, none owns a shard.
    let is_unowned = |db: &Db| db.lock().tables.address.is_empty();
    if nodes.len() < 2 || is_tiny(&world.plan.settings) || world.dbs.iter().any(is_unowned) {
        return;
    }
    world.cluster().network.calm();
    // A call that was under way is over.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for round in 0..WAKES {
        wakes(world, nodes, round, &mut dice).await;
    }
    in_order(world, nodes, &mut dice).await;
}

/// Fetches of all processes, or of all but this one.
fn fetches(world: &World, but: Option<&Node>) -> u64 {
    let forwarded = world.forwarded.lock().unwrap_or_else(PoisonError::into_inner);
    let counted = forwarded.fetches.iter().filter(|(own, _)| but.is_none_or(|node| node.address != **own));
    counted.map(|(_, count)| count).sum()
}

/// Under tiny limits and budgets a call may be refused.
fn is_tiny(settings: &Settings) -> bool {
    let usual = Settings::default();
    settings.polls < usual.polls
        || settings.admit_bytes < usual.admit_bytes
        || settings.admit_shard_bytes < usual.admit_shard_bytes
        || settings.admit_tenant_bytes < usual.admit_tenant_bytes
        || settings.index_bytes < usual.index_bytes
        || settings.limits.leased_per_topic < usual.limits.leased_per_topic
        || settings.limits.leased_per_shard < usual.limits.leased_per_shard
}

fn port(world: &World, dice: Dice) -> Port<'_> {
    Port { world, dice, patient: true }
}

fn shard(world: &World, dice: &mut Dice) -> ShardId {
    ShardId(dice.within(1, world.plan.shards as u64) as u32)
}

fn poll(tenant: usize, topic: &Topic, max_items: usize, wait: Duration) -> DequeueCall {
    DequeueCall {
        namespace: namespace(tenant),
        demands: vec![Demand { topic: topic.clone(), max_items }],
        wait,
        max_bytes: 1 << 20,
        ..DequeueCall::default()
    }
}

/// Polls wait at nodes, and another node stores an item: one of them gets it, and nobody is asked for it
/// twice.
async fn wakes(world: &World, nodes: &[Node], round: usize, dice: &mut Dice) {
    let tenant = round % NAMESPACES.len();
    let at = dice.within(0, nodes.len() as u64 - 1) as usize;
    let (consumer, producer) = (&nodes[at], &nodes[(at + 1) % nodes.len()]);
    let mut stores = port(world, dice.fork());
    let topic: Topic = format!("wake-{round}").into();
    let id = shard(world, dice);
    let item = |tag| SentItem { topic: topic.clone(), ..SentItem::plain(tag, id) };
    let within = if world.plan.follows_all() { WOKEN_WITHIN } else { GUESSED_WITHIN };
    let asked = if round.is_multiple_of(2) { topic.clone() } else { format!("{topic}*").into() };
    let call = poll(tenant, &asked, 1, within + Duration::from_secs(2));
    if round >= WAKES_IN_VAIN && world.plan.follows_all() {
        let item = item(stores.next_tag());
        wakes_in_vain(world, (consumer, producer), (tenant, &asked), item, dice).await;
    }
    let (before, item) = (world.recorded(), item(stores.next_tag()));
    let store = async {
        tokio::time::sleep(POLL_HEARD_AFTER).await;
        stores.enqueue(producer, tenant, vec![item], None).await;
    };
    let fetched = fetches(world, None);
    let mut polls = port(world, dice.fork());
    if world.plan.follows_all() {
        // One more at the same node, and one at a third, if there is one.
        let (mut same, mut third) = (port(world, dice.fork()), port(world, dice.fork()));
        tokio::join!(
            polls.dequeue(consumer, tenant, call.clone()),
            same.dequeue(consumer, tenant, call.clone()),
            third.dequeue(&nodes[(at + 2) % nodes.len()], tenant, call),
            store
        );
        let took = fetches(world, None) - fetched;
        if took > 1 {
            world.blame("MESSAGES", format!("one item of {topic} took {took} fetches"));
        }
    } else {
        tokio::join!(polls.dequeue(consumer, tenant, call), store);
    }
    ack_all(&mut polls, consumer, tenant, before).await;
    world.cluster().coverage().wakes_across += 1;
    let calls = world.calls_since(before);
    let stored = calls.iter().find(|call| matches!(call.what, What::Enqueue { .. }));
    let taken =
        calls.iter().find(|call| matches!(&call.what, What::Dequeue { answer, .. } if has_items(answer)));
    let late = |stored: &Call, taken: &Call| taken.end.at > stored.end.at.plus(within);
    match (stored, taken) {
        (Some(stored), Some(taken)) if late(stored, taken) => {
            let what = format!(
                "call {} was stored at {:?}, and poll {} got it at {:?}",
                stored.start.event, stored.end.at, taken.start.event, taken.end.at
            );
            world.blame("WAKE-ACROSS", what);
        }
        (Some(_), Some(_)) => {}
        _ => world.blame("WAKE-ACROSS", format!("a poll at {} got nothing of {topic}", consumer.address)),
    }
}

/// A poll waits at a node, and the node's fetch of an item that it is offered gets lost. A poll at the
/// producer gets that item. The offer lapses, so the next item comes at once.
async fn wakes_in_vain(
    world: &World,
    (consumer, producer): (&Node, &Node),
    (tenant, asked): (usize, &Topic),
    item: SentItem,
    dice: &mut Dice,
) {
    let (mut polls, mut stores) = (port(world, dice.fork()), port(world, dice.fork()));
    let (before, network) = (world.recorded(), &world.cluster().network);
    network.lose_fetches(true);
    let store = async {
        tokio::time::sleep(POLL_HEARD_AFTER).await;
        stores.enqueue(producer, tenant, vec![item], None).await;
    };
    let waits = polls.dequeue(consumer, tenant, poll(tenant, asked, 1, POLL_HEARD_AFTER * 2));
    let (mut count, ()) = tokio::join!(waits, store);
    network.lose_fetches(false);
    if count == 0 {
        count = polls.dequeue(producer, tenant, poll(tenant, asked, 1, ASKS_AGAIN_AFTER)).await;
    }
    ack_all(&mut polls, producer, tenant, before).await;
    if count == 0 {
        world.blame("WAKE-ACROSS", format!("nobody got the item of {asked} whose fetch was lost"));
    }
    tokio::time::sleep(ASKS_AGAIN_AFTER).await;
}

/// Acks the items of all polls behind the first `before` calls.
async fn ack_all(port: &mut Port<'_>, node: &Node, tenant: usize, before: usize) {
    let receipts = port.world.calls_since(before).into_iter().flat_map(|call| match call.what {
        What::Dequeue { answer: Answer::Done(items), .. } => items,
        _ => Vec::new(),
    });
    let receipts: Vec<Receipt> = receipts.filter_map(|item| item.receipt).collect();
    if !receipts.is_empty() {
        port.ack(node, tenant, receipts).await;
    }
}

fn has_items<T>(answer: &Answer<Vec<T>>) -> bool {
    matches!(answer, Answer::Done(items) if !items.is_empty())
}

/// Items of different priorities are stored in all shards, and polled for at one node.
async fn in_order(world: &World, nodes: &[Node], dice: &mut Dice) {
    let mut port = port(world, dice.fork());
    let (tenant, topics) = (0, if world.plan.prefixes { 3 } else { 1 });
    let asked = Topic::from(if world.plan.prefixes { "order-*" } else { "order-0" });
    let mut stored = BTreeSet::new();
    // All nodes follow the topic.
    for node in nodes {
        port.dequeue(node, tenant, poll(tenant, &asked, 1, Duration::ZERO)).await;
    }
    for number in 0..ITEMS_PER_SHARD * world.plan.shards as u64 {
        let tag = port.next_tag();
        let id = ShardId((number % world.plan.shards as u64 + 1) as u32);
        let priority = dice.within(0, 4) as i32;
        let topic: Topic = format!("order-{}", number % topics).into();
        let item = SentItem { topic, priority, ..SentItem::plain(tag, id) };
        let node = dice.pick(nodes).clone();
        if port.enqueue(&node, tenant, vec![item], None).await.is_empty() {
            stored.insert(tag);
        }
    }
    let node = dice.pick(nodes).clone();
    tokio::time::sleep(HEARD_AFTER).await;
    let (before, fetched) = (world.recorded(), fetches(world, Some(&node)));
    let mut count = 0;
    let follows = world.plan.follows_all();
    for _ in 0..if follows { 2 } else { 40 } * stored.len() {
        count += port.dequeue(&node, tenant, poll(tenant, &asked, 2, Duration::from_millis(400))).await;
        if count >= stored.len() {
            break;
        }
    }
    ack_all(&mut port, &node, tenant, before).await;
    let passed_on = fetches(world, Some(&node)) - fetched;
    if passed_on > 0 {
        world.blame("MESSAGES", format!("nodes that were not polled made {passed_on} fetches"));
    }
    let mut last = i32::MIN;
    for call in world.calls_since(before) {
        let What::Dequeue { answer: Answer::Done(items), .. } = &call.what else { continue };
        for item in items {
            if item.priority < last && follows {
                let what = format!("priority {} after {last} in call {}", item.priority, call.start.event);
                return world.blame("PRIORITY-ACROSS", what);
            }
            last = item.priority;
        }
    }
    if count < stored.len() {
        world.blame("WAKE-ACROSS", format!("{count} of {} items came at {}", stored.len(), node.address));
    }
}
