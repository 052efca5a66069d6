//! Clients with random calls.

use std::time::Duration;

use forebay_engine::{ActiveTopicsCall, Demand, DequeueCall, ExtendOf, NackAction, NackOf, ShardState};
use forebay_store::{OperationId, OperationKind, OperationOrder, OperationSpec, OperationWish};
use forebay_types::{DeliveryPolicy, Receipt, Schedule, ShardId, Timestamp, Topic, topic_covers};

use super::{
    client_changes,
    history::SentItem,
    node::{Port, namespace},
    plan::Kind,
    process::Node,
    world::World,
};
use crate::fake::Dice;

/// Most bytes of the head of a topic in the ready index.
const HEAD_BYTES_MAX: usize = 1_024;
/// Most bytes of a call's items in the ready index.
const CALL_BYTES_MAX: usize = 20 * 4_600;
/// How often an enqueue that was refused is sent again.
const RESENDS_MAX: usize = 6;
/// The pause between two looks at the engines' own accounts.
const WATCH_EVERY: Duration = Duration::from_millis(250);

/// Compares the engines' own accounts with their budgets, until its task is aborted.
pub async fn watch(world: &World) {
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        for node in world.alive() {
            // An engine that stands still, or has stopped, says nothing.
            let status = tokio::time::timeout(WATCH_EVERY, node.engine.status()).await;
            if let Ok(Some(status)) = status {
                bounded(world, &status);
            }
        }
    }
}

/// Runs one client.
pub async fn live(world: &World, dice: Dice) {
    let mut port = Port { world, dice, patient: false };
    for _ in 0..world.plan.steps {
        let node = choose(world, &mut port.dice);
        step(&mut port, &node).await;
        if port.dice.chance(700) {
            let span = port.dice.millis(world.plan.pause_ms);
            tokio::time::sleep(span).await;
        }
        if port.dice.chance(world.plan.rests) {
            // Long enough for windows and generations of dedupe keys to end.
            let span = port.dice.millis((30_000, 90_000));
            tokio::time::sleep(span).await;
        }
    }
}

/// Chooses a process, mostly the youngest.
pub fn choose(world: &World, dice: &mut Dice) -> Node {
    let alive = world.alive();
    let last = alive.last().or(world.nodes().last()).cloned();
    let mostly_youngest = if world.plan.kind == Kind::Cluster { 0 } else { 700 };
    let any =
        if alive.is_empty() || dice.chance(mostly_youngest) { None } else { Some(dice.pick(&alive).clone()) };
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
        94..96 => settle_old(port, node).await,
        96 => client_changes::change(port, node).await,
        97 => operate(port, node, tenant).await,
        _ => read_overview(port, node, tenant).await,
    }
}

async fn enqueue(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let dice = &mut port.dice;
    let count = if dice.chance(500) { 1 } else { dice.within(2, 12) };
    let request_id = dice.chance(250).then(|| dice.next()).map(|number| request_id(port.world, number));
    let keyed = request_id.is_none() && dice.chance(port.world.plan.keys);
    let mut items = Vec::new();
    for _ in 0..count {
        let mut sent = item(port, node);
        let dice = &mut port.dice;
        if request_id.is_some() {
            sent.shard = None;
        } else if keyed {
            sent.shard = None;
            let mut receipts = port.world.receipts();
            let used: Vec<String> =
                receipts.keys.iter().filter(|(by, _)| *by == tenant).map(|(_, key)| key.clone()).collect();
            let again = !used.is_empty() && dice.chance(port.world.plan.keys.max(300));
            let key = if again { dice.pick(&used).clone() } else { format!("key-{}", sent.tag) };
            receipts.keys.push((tenant, key.clone()));
            sent.dedupe_key = Some(key);
        }
        items.push(sent);
    }
    let mut left = port.enqueue(node, tenant, items, request_id.clone()).await;
    if port.world.plan.kind != Kind::Changes || !keyed && request_id.is_none() {
        return;
    }
    // The home of a key is at one process, and may be at another one a moment later.
    for _ in 0..RESENDS_MAX {
        if left.is_empty() {
            return;
        }
        let span = port.dice.millis((50, 600));
        tokio::time::sleep(span).await;
        let alive = port.world.alive();
        if alive.is_empty() {
            return;
        }
        let other = port.dice.pick(&alive).clone();
        left = port.enqueue(&other, tenant, left, request_id.clone()).await;
    }
}

/// A new request id, or now and then one that is used already, perhaps by another tenant.
fn request_id(world: &World, number: u64) -> String {
    let used = &mut world.receipts().requests;
    // The release before takes calls with one id for one call.
    if number.is_multiple_of(8) && !used.is_empty() && !world.plan.older {
        return used[(number / 8) as usize % used.len()].clone();
    }
    let id = format!("request-{number}");
    used.push(id.clone());
    id
}

fn item(port: &mut Port<'_>, node: &Node) -> SentItem {
    let tag = port.next_tag();
    let (world, dice) = (port.world, &mut port.dice);
    let plan = &world.plan;
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
    SentItem {
        tag,
        topic: topic(dice, plan.topics),
        priority: *dice.pick(&[0, 0, 0, 1, 5, -3, i32::MAX, i32::MIN]),
        schedule,
        lease: dice.millis((1_000, 8_000)),
        ttl,
        policy: if dice.chance(100) { DeliveryPolicy::AtMostOnce } else { DeliveryPolicy::AtLeastOnce },
        max_attempts: dice.within(1, 5) as u32,
        dedupe_key: None,
        shard: dice.chance(80).then(|| *dice.pick(&node.shards)),
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
    if port.world.plan.prefixes && dice.chance(400) {
        let topic: Topic = (*dice.pick(&["*", "topic-*", "topic-1*"])).into();
        demands.retain(|demand| !topic_covers(&topic, &demand.topic));
        let max_items = if dice.chance(500) { 1 } else { dice.within(2, 20) as usize };
        demands.push(Demand { topic, max_items });
    }
    let call = DequeueCall {
        namespace: namespace(tenant),
        demands,
        wait: if dice.chance(500) { Duration::ZERO } else { dice.millis((1, 5_000)) },
        lease: dice.chance(200).then(|| dice.millis((1_000, 4_000))),
        consumer: if dice.chance(500) { String::new() } else { format!("client-{}", dice.below(9)) },
        max_bytes: if dice.chance(200) { dice.within(1, 2_000) as usize } else { 3 << 20 },
        ..DequeueCall::default()
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
        0..6 => NackAction::Fail(Some(delay)),
        6..9 => NackAction::Release(delay),
        _ => NackAction::DeadLetter,
    };
    let poison = dice.chance(port.world.plan.poison / 2);
    let metadata = dice.chance(300).then(|| format!("nack {}", dice.below(1_000)).into_bytes());
    let metadata = if poison { Some(crate::fake::POISON.to_vec()) } else { metadata };
    let reason = if dice.chance(300) { String::new() } else { format!("reason {}", dice.below(1_000)) };
    NackOf { receipt, action, metadata, reason }
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

/// Purges a topic, redrives or deletes its dead letters, or releases its leases. Some of that is cancelled.
async fn operate(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let topics = port.world.plan.topics;
    let dice = &mut port.dice;
    let kind = match dice.below(14) {
        0..3 => OperationKind::Purge,
        3 => OperationKind::DeleteDead,
        4..8 => OperationKind::Redrive,
        8..10 => OperationKind::ResetLeases,
        10 => OperationKind::Cancel,
        _ => OperationKind::Update,
    };
    let update = (kind == OperationKind::Update).then(|| client_changes::update_of_many(port));
    let dice = &mut port.dice;
    let number = dice.next().to_be_bytes();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number);
    id[8..].copy_from_slice(&number);
    let filter = match dice.below(3) {
        0 => "priority > 0".to_owned(),
        1 => "attempt < 3".to_owned(),
        _ => String::new(),
    };
    let spec = OperationSpec {
        id: OperationId(id),
        kind,
        namespace: namespace(tenant).to_string(),
        topic: topic(dice, topics).to_string(),
        filter,
        leased: kind == OperationKind::Purge && dice.chance(500),
        to_topic: String::new(),
        ttl: (kind == OperationKind::Redrive && dice.chance(300)).then(|| dice.millis((300, 9_000))),
        update,
        max_redrives: (kind == OperationKind::Redrive && dice.chance(300)).then_some(1),
        limits: None,
        shards: node.shards.clone(),
        home: node.shards.first().copied().unwrap_or(ShardId(1)),
        who: String::new(),
        reason: String::new(),
        started_at: Timestamp::from_micros(0),
        request: id,
        wish: OperationWish { version: 1, rate: 1_000, active: 1, cancelled: false },
    };
    let cancels = dice.chance(150);
    port.order(node, OperationOrder::Follow(Box::new(spec.clone()))).await;
    if cancels {
        let wish = OperationWish { version: 2, cancelled: true, ..spec.wish };
        port.order(node, OperationOrder::Follow(Box::new(OperationSpec { wish, ..spec }))).await;
    }
}

/// Reads the active topics or the status.
async fn read_overview(port: &mut Port<'_>, node: &Node, tenant: usize) {
    if port.dice.chance(600) {
        let dice = &mut port.dice;
        let limit = if dice.chance(500) { 100 } else { dice.within(1, 3) as usize };
        let prefix = match dice.below(4) {
            0 | 1 => String::new(),
            2 => "topic-".to_owned(),
            _ => format!("topic-{}", dice.below(port.world.plan.topics as u64)),
        };
        let call =
            ActiveTopicsCall { namespace: namespace(tenant), limit, after: None, prefix, named: Vec::new() };
        return port.active_topics(node, tenant, call).await;
    }
    if let Ok(Some(status)) = tokio::time::timeout(Duration::from_secs(30), node.engine.status()).await {
        bounded(port.world, &status);
    }
}

fn bounded(world: &World, status: &forebay_engine::Status) {
    let settings = &world.plan.settings;
    // One that was just taken over may still have to be made room for.
    let owned = status.shards.iter().filter(|shard| shard.state == ShardState::Owned).count();
    let budget = settings.index_bytes / owned.saturating_sub(1).max(1);
    for shard in &status.shards {
        // Whatever the budget, a head of each topic stays, without its body.
        let heads = shard.topics * HEAD_BYTES_MAX;
        // Items that could not be leased go back into their window, and are cut with the next batch.
        let returned = if world.plan.kind == Kind::Quiet { 0 } else { CALL_BYTES_MAX };
        if shard.index_bytes > budget.max(heads) + returned {
            let (id, bytes) = (shard.id, shard.index_bytes);
            world.blame("BOUNDED", format!("the index of shard {id} holds {bytes} bytes of {budget}"));
        }
    }
    // One call is always taken.
    if status.admitted_bytes > settings.admit_bytes.max(CALL_BYTES_MAX) {
        world.blame("BOUNDED", format!("{} bytes admitted", status.admitted_bytes));
    }
}

fn topic(dice: &mut Dice, topics: usize) -> Topic {
    let at = dice.below(topics as u64);
    format!("topic-{at}").into()
}
