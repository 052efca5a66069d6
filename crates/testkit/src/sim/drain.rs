//! The end of a run: faults end, one process owns all shards, and every item is delivered or removed.

use std::{collections::HashSet, sync::PoisonError, time::Duration};

use forebay_engine::{ActiveTopicsCall, Demand, DequeueCall, Duty, Intake};
use forebay_types::{Receipt, ShardId, State, TopicId};

use super::{
    chaos, cluster,
    history::{Answer, CallerKnowledge, SentItem, What},
    node::{NAMESPACES, Port, namespace},
    plan::Kind,
    process::Node,
    world::World,
};
use crate::fake::{Db, Dice};

/// How long the delivery of a new item may take when there is no other.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the remaining items may take if no clock stepped.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(300);
/// The same if clocks stepped by up to an hour: a shard's time runs slower until the clocks agree.
const DRAIN_TIMEOUT_CLOCKS: Duration = Duration::from_secs(3 * 3_600);

/// Ends all faults and processes every item.
pub async fn drain(world: &World, mut dice: Dice) {
    chaos::heal(world);
    if world.plan.kind == Kind::Cluster {
        if let Some(node) = cluster::settle(world, dice.fork()).await {
            finish(world, dice, &node).await;
        }
        return;
    }
    // The faults may have ended while a process was stopping.
    let told = world.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
    world
        .alive()
        .iter()
        .filter(|node| told.iter().any(|(number, _)| *number == node.process.number))
        .for_each(|node| world.kill(node));
    world.configure(world.dbs.iter().map(|db| (db.id, Intake::Open)).collect());
    let mut alive = world.alive();
    let node = match alive.pop_if(|node| node.shards.len() == world.dbs.len()) {
        Some(node) => node,
        None => world.start(dice.next(), 0),
    };
    world.tell(&node);
    node.engine.set_duties(world.dbs.iter().map(|db| (db.id, Duty::Own)).collect());
    for other in &alive {
        chaos::stop(world, other).await;
    }
    finish(world, dice, &node).await;
}

/// One node takes all shards, and every item is delivered or removed.
async fn finish(world: &World, dice: Dice, node: &Node) {
    if tokio::time::timeout(Duration::from_secs(60), owns_all(world, node)).await.is_err() {
        world.blame("EVENTUAL-REDELIVERY", "the only node does not own all shards after 60 s");
        return;
    }
    audit(world, node).await;
    let mut port = Port { world, dice, patient: true };
    let bound = if world.plan.exact_time() { DRAIN_TIMEOUT } else { DRAIN_TIMEOUT_CLOCKS };
    let end = world.journal.elapsed() + bound;
    loop {
        while left(world) > 0 {
            if world.journal.elapsed() > end {
                let rest = rest(world);
                world.blame("EVENTUAL-REDELIVERY", format!("after {bound:?} these items remain: {rest}"));
                return;
            }
            for tenant in 0..NAMESPACES.len() {
                take_all(&mut port, node, tenant).await;
            }
        }
        // Calls of disconnected callers and the last sweeps take a moment.
        tokio::time::sleep(Duration::from_secs(2)).await;
        if left(world) == 0 && operations(world) == 0 {
            break;
        }
        if world.journal.elapsed() > end {
            let open = operations(world);
            world.blame("EVENTUAL-REDELIVERY", format!("after {bound:?} {open} operations have not ended"));
            return;
        }
    }
    audit(world, node).await;
    takes_again(&mut port, node).await;
    emptied(world);
    forgets(world, node, bound).await;
    stop(world, node).await;
}

/// Returns when the node owns every shard. A node is ready even if it could not reach some of them.
async fn owns_all(world: &World, node: &Node) {
    node.engine.ready().await;
    while world.dbs.iter().any(|db| db.lock().tables.address != node.address) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn left(world: &World) -> usize {
    world.dbs.iter().map(|db| db.lock().tables.items.len()).sum()
}

/// Parts of operations that have not ended.
fn operations(world: &World) -> usize {
    let open = |db: &Db| {
        let tables = &db.lock().tables;
        tables.operations.values().filter(|row| row.progress.ended_at.is_none()).count()
    };
    world.dbs.iter().map(open).sum()
}

fn rest(world: &World) -> String {
    let mut rest = String::new();
    for db in &world.dbs {
        let tables = &db.lock().tables;
        let leased = tables.leased();
        for item in tables.items.values().take(5) {
            let state = if leased.contains(&item.key.seq) { "leased" } else { "free" };
            rest += &format!("{}-{} {:?} {state}; ", db.id, item.key.seq.0, item.state);
        }
    }
    rest
}

async fn take_all(port: &mut Port<'_>, node: &Node, tenant: usize) {
    let topics = (0..port.world.plan.topics).map(|topic| format!("topic-{topic}"));
    let demands: Vec<Demand> = topics.map(|topic| Demand { topic: topic.into(), max_items: 100 }).collect();
    let call = DequeueCall {
        namespace: namespace(tenant),
        demands,
        wait: Duration::from_millis(500),
        consumer: "drain".to_owned(),
        max_bytes: 3 << 20,
        ..DequeueCall::default()
    };
    let before = port.world.recorded();
    if port.dequeue(node, tenant, call).await == 0 {
        // A refused call takes no time, but time must pass.
        tokio::time::sleep(Duration::from_millis(20)).await;
        return;
    }
    let receipts: Vec<Receipt> = {
        let calls = port.world.calls_since(before);
        let calls = calls.iter().filter_map(|call| match &call.what {
            What::Dequeue { answer: Answer::Done(items), .. } => Some(items),
            _ => None,
        });
        calls.flatten().filter_map(|item| item.receipt).collect()
    };
    if !receipts.is_empty() {
        port.ack(node, tenant, receipts).await;
    }
}

/// CONSERVATION: at a moment without changes, the node's topic counts equal those of the rows.
async fn audit(world: &World, node: &Node) {
    let mut last = String::new();
    for _ in 0..100 {
        let before: Vec<u64> = world.dbs.iter().map(|db| db.lock().tables.fence.batch).collect();
        let told = tell(node).await;
        let after: Vec<u64> = world.dbs.iter().map(|db| db.lock().tables.fence.batch).collect();
        let stored = count(world);
        match told {
            Ok(told) if before == after && told == stored => return,
            Ok(told) => last = format!("told {told:?}, stored {stored:?}"),
            Err(why) => last = why,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.blame("CONSERVATION", format!("the active topics differ from the rows: {last}"));
}

/// A topic's name, ready, leased and scheduled items, and the priority and rank of its first one.
type Counts = Vec<(String, u64, u64, u64, i32, i64)>;

async fn tell(node: &Node) -> Result<Counts, String> {
    let mut told = Vec::new();
    for (tenant, name) in NAMESPACES.iter().enumerate() {
        let call = ActiveTopicsCall {
            namespace: namespace(tenant),
            limit: 1_000,
            after: None,
            prefix: String::new(),
            named: Vec::new(),
        };
        let page = tokio::time::timeout(Duration::from_secs(30), node.engine.active_topics(call)).await;
        let page =
            page.map_err(|_| "no answer within 30 s".to_owned())?.map_err(|refusal| refusal.to_string())?;
        for topic in page.topics {
            let full = format!("{name}/{}", topic.position.topic);
            let (first, since) = (topic.position.best_priority, topic.position.oldest_ready_at.as_micros());
            told.push((full, topic.ready, topic.leased, topic.scheduled, first, since));
        }
    }
    told.sort();
    Ok(told)
}

fn count(world: &World) -> Counts {
    let mut counts = std::collections::BTreeMap::<String, (u64, u64, u64, (i32, i64))>::new();
    for db in &world.dbs {
        let tables = &db.lock().tables;
        let leased = tables.leased();
        for item in tables.items.values() {
            let Some(topic) = tables.topics.get(&item.topic) else { continue };
            let count = counts.entry(topic.name.to_string()).or_insert((0, 0, 0, (i32::MAX, i64::MAX)));
            match item.state {
                State::Scheduled => count.2 += 1,
                State::Ready if leased.contains(&item.key.seq) => count.1 += 1,
                State::Ready => {
                    count.0 += 1;
                    count.3 = count.3.min((item.key.priority, item.key.rank));
                }
            }
        }
    }
    let active = counts.into_iter().filter(|(_, count)| count.0 > 0);
    let active = active.map(|(name, (ready, leased, scheduled, (first, since)))| {
        (name, ready, leased, scheduled, first, since)
    });
    active.collect()
}

/// BOUNDED: once nothing waits, every shard takes a call of every tenant. And nothing is charged afterwards.
async fn takes_again(port: &mut Port<'_>, node: &Node) {
    for tenant in 0..NAMESPACES.len() {
        for shard in 1..=port.world.plan.shards {
            let shard = ShardId(u32::try_from(shard).unwrap_or(u32::MAX));
            let tag = port.next_tag();
            let call = port.world.recorded();
            port.enqueue(node, tenant, vec![SentItem::plain(tag, shard)], None).await;
            let taken = port.world.calls_since(call).iter().any(|call| match &call.what {
                What::Enqueue { answer, .. } => answer.known(0) == CallerKnowledge::Done,
                _ => false,
            });
            if !taken {
                let what = format!("nothing waits, and shard {shard} takes nothing of tenant {tenant}");
                port.world.blame("BOUNDED", what);
                return;
            }
            let end = port.world.journal.elapsed() + DELIVERY_TIMEOUT;
            while left(port.world) > 0 {
                if port.world.journal.elapsed() > end {
                    let rest = rest(port.world);
                    port.world.blame("EVENTUAL-REDELIVERY", format!("a new item is not delivered: {rest}"));
                    return;
                }
                take_all(port, node, tenant).await;
            }
        }
    }
    let status = tokio::time::timeout(Duration::from_secs(30), node.engine.status()).await;
    if let Ok(Some(status)) = status
        && (status.admitted_bytes, status.polls) != (0, 0)
    {
        let (bytes, polls) = (status.admitted_bytes, status.polls);
        port.world
            .blame("BOUNDED", format!("nothing waits, and {bytes} bytes and {polls} polls are counted"));
    }
}

/// Removed items have left no other rows.
fn emptied(world: &World) {
    for db in &world.dbs {
        let tables = &db.lock().tables;
        let rests = [tables.schedule.len(), tables.expiry.len(), tables.leases.len(), tables.order.len()];
        if rests != [0; 4] {
            let what = format!("shard {} has rows without items: {rests:?}", db.id);
            world.blame("CONSERVATION", what);
        }
    }
}

/// TIME: dead letters go once they were kept for long enough, and with the last one its topic. CONSERVATION:
/// the node counts those that stay.
async fn forgets(world: &World, node: &Node, bound: Duration) {
    let end = world.journal.elapsed() + bound;
    let left = || {
        let counts = world.dbs.iter().map(|db| {
            let tables = &db.lock().tables;
            let kept: HashSet<TopicId> = tables.dead.values().map(|(item, _)| item.topic).collect();
            let empty = tables.topics.keys().filter(|topic| !kept.contains(topic)).count();
            (tables.retention.len(), if world.plan.seed.is_multiple_of(4) { empty } else { 0 })
        });
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    };
    while left() != (0, 0) {
        if world.journal.elapsed() > end {
            let (letters, topics) = left();
            let what = format!("after {bound:?} {letters} dead letters and {topics} empty topics remain");
            return world.blame("TIME", what);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let stored: usize = world.dbs.iter().map(|db| db.lock().tables.dead.len()).sum();
    let mut told = None;
    // The node may not have heard of the last commit yet.
    for _ in 0..100 {
        let status = tokio::time::timeout(Duration::from_secs(30), node.engine.status()).await;
        told = status.ok().flatten().map(|status| status.shards.iter().map(|shard| shard.dead).sum::<u64>());
        if told == Some(stored as u64) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.blame("CONSERVATION", format!("{told:?} dead letters are told, {stored} are stored"));
}

/// CLEAN-DRAIN: the last node stops in time and releases its shards.
async fn stop(world: &World, node: &Node) {
    if let Some(task) = node.member.as_ref().and_then(|member| member.leave()) {
        task.leave(Duration::from_secs(7)).await;
    }
    match tokio::time::timeout(Duration::from_secs(25), node.engine.stop()).await {
        Ok(()) => {
            for db in &world.dbs {
                let address = db.lock().tables.address.clone();
                if !address.is_empty() {
                    world.blame("CLEAN-DRAIN", format!("shard {} was not released by {address}", db.id));
                }
            }
        }
        Err(_) => world.blame("CLEAN-DRAIN", "the last node did not stop within 25 s"),
    }
}
