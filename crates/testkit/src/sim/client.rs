//! Clients with random calls.

use std::time::Duration;

use forebay_engine::{ActiveTopicsCall, Demand, DequeueCall, ExtendOf, NackAction, NackOf, Schedule};
use forebay_types::{DeliveryPolicy, Receipt, ShardId, Topic};

use super::{
    history::Sent,
    node::{NAMESPACES, Port, namespace},
    world::{Node, World},
};
use crate::fake::Dice;

/// Runs one client.
pub async fn live(world: &World, dice: Dice) {
    let mut port = Port { world, dice };
    for _ in 0..world.plan.steps {
        let node = choose(world, &mut port.dice);
        step(&mut port, &node).await;
        if port.dice.chance(700) {
            let span = port.dice.millis((0, 400));
            tokio::time::sleep(span).await;
        }
    }
}

/// Chooses a process, mostly the youngest.
pub fn choose(world: &World, dice: &mut Dice) -> Node {
    let alive = world.alive();
    let last = alive.last().or(world.nodes().last()).cloned();
    let any = if alive.is_empty() || dice.chance(700) { None } else { Some(dice.pick(&alive).clone()) };
    any.or(last).expect("a run has a process")
}

async fn step(port: &mut Port<'_>, node: &Node) {
    let tenant = usize::from(port.dice.chance(150));
    match port.dice.below(100) {
        0..30 => enqueue(port, node, tenant).await,
        30..36 => repeat(port, node).await,
        36..64 => dequeue(port, node, tenant).await,
        64..82 => ack(port, node).await,
        82..90 => nack(port, node).await,
        90..94 => extend(port, node).await,
        94..97 => settle_old(port, node).await,
        _ => read_overview(port, node, tenant).await,
    }
}

async fn enqueue(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let dice = &mut port.dice;
    let count = if dice.chance(500) { 1 } else { dice.within(2, 12) };
    let request_id = dice.chance(250).then(|| format!("request-{}", dice.next()));
    let keyed = request_id.is_none() && dice.chance(250);
    let mut items = Vec::new();
    for _ in 0..count {
        let mut sent = item(port);
        let dice = &mut port.dice;
        if request_id.is_some() {
            sent.shard = None;
        } else if keyed {
            sent.shard = None;
            let mut receipts = port.world.receipts();
            let used: Vec<String> =
                receipts.keys.iter().filter(|(by, _)| *by == tenant).map(|(_, key)| key.clone()).collect();
            let again = !used.is_empty() && dice.chance(300);
            let key = if again { dice.pick(&used).clone() } else { format!("key-{}", sent.tag) };
            receipts.keys.push((tenant, key.clone()));
            sent.dedupe_key = Some(key);
        }
        items.push(sent);
    }
    port.enqueue(node, tenant, items, request_id).await;
}

fn item(port: &mut Port<'_>) -> Sent {
    let (world, dice) = (port.world, &mut port.dice);
    let plan = &world.plan;
    let tag = {
        let mut receipts = world.receipts();
        receipts.tags += 1;
        receipts.tags
    };
    let schedule = match dice.below(10) {
        // With a short delay an item is due before it is stored.
        0 => Schedule::Delay(dice.millis((0, 60))),
        2 => Schedule::Delay(dice.millis((0, 8_000))),
        1 if plan.exact_time() => {
            // Some of these times are in the past.
            let span = dice.millis((0, 6_000));
            Schedule::After(world.journal.now().plus(span).minus(Duration::from_secs(1)))
        }
        _ => Schedule::Now,
    };
    // Longer than every delay: the API refuses an item that expires before it is due.
    let shortest = if schedule == Schedule::Now { 300 } else { 8_001 };
    let ttl = dice.chance(150).then(|| dice.millis((shortest, shortest + 6_000)));
    Sent {
        tag,
        topic: topic(dice, plan.topics),
        priority: *dice.pick(&[0, 0, 0, 1, 5, -3, i32::MAX, i32::MIN]),
        schedule,
        lease: dice.millis((1_000, 8_000)),
        ttl,
        policy: if dice.chance(100) { DeliveryPolicy::AtMostOnce } else { DeliveryPolicy::AtLeastOnce },
        max_attempts: dice.within(1, 5) as u32,
        dedupe_key: None,
        shard: dice.chance(80).then(|| ShardId(dice.within(1, plan.shards as u64) as u32)),
        poison: dice.chance(plan.poison),
    }
}

/// Repeats an enqueue whose outcome may be unknown, without any change.
async fn repeat(port: &mut Port<'_>, node: &Node) {
    let again = {
        let receipts = &mut *port.world.receipts();
        if receipts.repeatable.is_empty() {
            return;
        }
        let at = port.dice.below(receipts.repeatable.len() as u64) as usize;
        receipts.repeatable.swap_remove(at)
    };
    port.enqueue(node, again.0, again.1, again.2).await;
}

async fn dequeue(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let dice = &mut port.dice;
    let mut demands: Vec<Demand> = Vec::new();
    for _ in 0..dice.within(1, 3) {
        let topic = topic(dice, port.world.plan.topics);
        if demands.iter().all(|demand| demand.topic != topic) {
            let max_items = if dice.chance(500) { 1 } else { dice.within(2, 20) as usize };
            demands.push(Demand { topic, max_items });
        }
    }
    let call = DequeueCall {
        namespace: namespace(tenant),
        demands,
        wait: if dice.chance(500) { Duration::ZERO } else { dice.millis((1, 5_000)) },
        lease: dice.chance(200).then(|| dice.millis((1_000, 4_000))),
        consumer: String::new(),
        max_bytes: if dice.chance(200) { dice.within(1, 2_000) as usize } else { 3 << 20 },
    };
    port.dequeue(node, tenant, call).await;
}

/// A few deliveries of one tenant.
fn some(port: &mut Port<'_>, old: bool) -> Option<(usize, Vec<Receipt>)> {
    let receipts = port.world.receipts();
    let from = if old { &receipts.old } else { &receipts.held };
    if from.is_empty() {
        return None;
    }
    let (tenant, first) = *port.dice.pick(from);
    let mut receipts = vec![first];
    for _ in 0..port.dice.below(6) {
        let (other, receipt) = *port.dice.pick(from);
        // Sometimes the same receipt twice: clients make mistakes.
        if other == tenant && (!receipts.contains(&receipt) || port.dice.chance(50)) {
            receipts.push(receipt);
        }
    }
    Some((tenant, receipts))
}

async fn ack(port: &mut Port<'_>, node: &Node) {
    if let Some((tenant, receipts)) = some(port, false) {
        port.ack(node, tenant, receipts).await;
    }
}

async fn nack(port: &mut Port<'_>, node: &Node) {
    let Some((tenant, receipts)) = some(port, false) else { return };
    let nacks = receipts.into_iter().map(|receipt| nack_of(port, receipt)).collect();
    port.nack(node, tenant, nacks).await;
}

fn nack_of(port: &mut Port<'_>, receipt: Receipt) -> NackOf {
    let dice = &mut port.dice;
    let delay =
        if dice.chance(500) { Duration::ZERO } else { dice.millis((1, *dice.clone().pick(&[30, 4_000]))) };
    let action = match dice.below(10) {
        0..6 => NackAction::Fail(delay),
        6..9 => NackAction::Release(delay),
        _ => NackAction::DeadLetter,
    };
    let poison = dice.chance(port.world.plan.poison / 2);
    let metadata = dice.chance(200).then(|| b"changed".to_vec());
    let metadata = if poison { Some(crate::fake::POISON.to_vec()) } else { metadata };
    NackOf { receipt, action, metadata, reason: "at random".to_owned() }
}

async fn extend(port: &mut Port<'_>, node: &Node) {
    let Some((tenant, receipts)) = some(port, false) else { return };
    let mut extensions = Vec::new();
    for receipt in receipts {
        let lease = port.dice.chance(500).then(|| port.dice.millis((1_000, 6_000)));
        extensions.push(ExtendOf { receipt, lease });
    }
    port.extend(node, tenant, extensions).await;
}

/// Settles deliveries that have ended or may have ended.
async fn settle_old(port: &mut Port<'_>, node: &Node) {
    let Some((tenant, receipts)) = some(port, true) else { return };
    match port.dice.below(3) {
        0 => {
            let nacks = receipts.into_iter().map(|receipt| nack_of(port, receipt)).collect();
            port.nack(node, tenant, nacks).await;
        }
        1 => {
            let extensions = receipts.into_iter().map(|receipt| ExtendOf { receipt, lease: None });
            port.extend(node, tenant, extensions.collect()).await;
        }
        _ => {
            port.ack(node, tenant, receipts).await;
        }
    }
}

/// Reads the active topics or the status.
async fn read_overview(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let call =
        ActiveTopicsCall { namespace: namespace(tenant), limit: 100, after: None, prefix: String::new() };
    let reading = async {
        if port.dice.chance(500) {
            drop(node.engine.active_topics(call).await);
        } else if let Some(status) = node.engine.status().await {
            bounded(port.world, &status);
        }
    };
    drop(tokio::time::timeout(Duration::from_secs(30), reading).await);
}

fn bounded(world: &World, status: &forebay_engine::Status) {
    let settings = &world.plan.settings;
    let index: usize = status.shards.iter().map(|shard| shard.index_bytes).sum();
    // Whatever the budget, a window keeps a head of some entries for each topic and shard.
    let heads = (world.plan.topics * NAMESPACES.len() * world.plan.shards) * 40 * 1_024;
    if index > settings.index_bytes + heads {
        world.blame("BOUNDED", format!("the index holds {index} bytes of {}", settings.index_bytes));
    }
    if status.admitted_bytes > settings.admit_bytes {
        world.blame("BOUNDED", format!("{} bytes admitted", status.admitted_bytes));
    }
}

fn topic(dice: &mut Dice, topics: usize) -> Topic {
    let at = dice.below(topics as u64);
    format!("topic-{at}").into()
}
