//! `cargo xtask compose`: brings the cluster of `docker-compose.yml` up, lets it grow, kills a node that owns
//! shards while items are enqueued, and sees whether every item is delivered as promised.
//!
//! It is not a part of the tests: it needs Docker, and takes a few minutes.

mod events;
mod ledger;
mod producer;
mod queue;
mod stack;

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, ensure};

use events::{Stopwatch, until};
use ledger::Ledger;
use producer::Producer;
use queue::Queue;
use stack::{Container, Stack};

/// How many nodes there are at first, and how many later.
const NODES: [usize; 2] = [2, 3];
/// Items that are there before a node is killed.
const ITEMS: usize = 2_000;
/// Of these, what is delivered and acked before.
const DONE_BEFORE: usize = 400;
/// Of these, what is leased by a consumer that is never heard of again.
const LEFT_LEASED: usize = 50;
/// Calls that must be answered before a node is killed, and after its shards have other owners.
const CALLS: usize = 5;
/// How long a shard may have no owner. It is a few seconds on a machine with nothing else to do.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long all that is left may take, with leases that end meanwhile.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(180);

/// Runs it; says whether all promises were kept. Whatever happens, the cluster is taken down.
pub fn run() -> anyhow::Result<bool> {
    let stack = Stack::new()?;
    let done = check(&stack);
    if done.is_err() {
        stack.print_logs();
    }
    done.map(|()| true)
}

fn check(stack: &Stack) -> anyhow::Result<()> {
    let watch = Stopwatch::start();
    stack.build()?;
    watch.say("the image is there");
    stack.up(NODES[0])?;
    all_ready(stack, NODES[0])?;
    watch.say("two nodes are ready");

    let mut ledger = Ledger::default();
    fill(stack, &mut ledger)?;
    watch.say(&ledger.to_string());

    stack.up(NODES[1])?;
    all_ready(stack, NODES[1])?;
    let nodes = stack.nodes()?;
    until("every node owns a shard", TAKE_OVER_TIMEOUT, || {
        Ok((Queue::at(&nodes[0]).owners()? == names(&nodes)).then_some(()))
    })?;
    watch.say("three nodes are ready, and each owns shards");

    kill_an_owner(stack, &nodes, &mut ledger)?;
    watch.say(&ledger.to_string());
    drain(&stack.nodes()?, &mut ledger)?;
    watch.say(&format!("all are done: {ledger}"));

    stack.up(NODES[1])?;
    all_ready(stack, NODES[1])?;
    watch.say("the node that was killed is ready again");
    until("Prometheus sees every node", TAKE_OVER_TIMEOUT, || {
        Ok((stack.prometheus("sum(up{job=\"forebay\"})")? == Some(NODES[1] as f64)).then_some(()))
    })?;
    watch.say("Prometheus sees every node");
    Ok(())
}

/// `docker compose up --wait` has returned, so nothing is waited for.
fn all_ready(stack: &Stack, nodes: usize) -> anyhow::Result<()> {
    let running = stack.nodes()?;
    ensure!(running.len() == nodes, "{} nodes run instead of {nodes}", running.len());
    running.iter().try_for_each(Container::check_ready)
}

fn names(nodes: &[Container]) -> BTreeSet<String> {
    nodes.iter().map(|node| node.name().to_owned()).collect()
}

/// Stores items; some of them are done at once, and some are left leased.
fn fill(stack: &Stack, ledger: &mut Ledger) -> anyhow::Result<()> {
    let nodes = stack.nodes()?;
    let payloads: Vec<_> = (0..ITEMS).map(|number| format!("before {number}")).collect();
    for (node, payloads) in nodes.iter().zip(payloads.chunks(ITEMS / nodes.len())) {
        ledger.enqueued(Queue::at(node).enqueue(std::slice::from_ref(node), payloads)?);
    }
    ensure!(ledger.stored() == ITEMS, "items were refused without a fault: {ledger}");
    // The two shards that a topic has may be one node's, and a node delivers what is in its own.
    let mut left = [DONE_BEFORE, LEFT_LEASED];
    for node in &nodes {
        let queue = Queue::at(node);
        if left[0] > 0 {
            let deliveries = queue.dequeue(left[0])?;
            left[0] -= deliveries.len();
            ledger.delivered(&deliveries)?;
            ledger.acked(queue.ack(&deliveries)?);
        }
        if left[1] > 0 {
            let deliveries = queue.dequeue(left[1])?;
            left[1] -= deliveries.len();
            ledger.delivered(&deliveries)?;
        }
    }
    ensure!(ledger.done() == DONE_BEFORE, "items were not acked without a fault: {ledger}");
    Ok(())
}

/// Kills a node that owns shards while calls go to it, and waits until its shards have other owners.
fn kill_an_owner(stack: &Stack, nodes: &[Container], ledger: &mut Ledger) -> anyhow::Result<()> {
    let owners = Queue::at(&nodes[0]).owners()?;
    let owner = nodes.iter().find(|node| owners.contains(node.name())).context("no node owns a shard")?;
    let (victims, others): (Vec<_>, Vec<_>) =
        nodes.iter().cloned().partition(|node| node.name() == owner.name());
    let (victim, caller) = (owner, others.first().context("there is one node only")?);
    // The victim is called first, and another node only if it does not answer.
    let called: Vec<_> = victims.iter().chain(&others).cloned().collect();
    let mut producer = Producer::start(caller.clone(), called);
    producer.wait_for_calls(CALLS)?;
    stack.kill(victim)?;
    let survivors = names(&others);
    until("the survivors own every shard", TAKE_OVER_TIMEOUT, || {
        Ok((Queue::at(caller).owners()?.is_subset(&survivors)).then_some(()))
    })?;
    producer.wait_for_calls(CALLS)?;
    for outcomes in producer.stop()? {
        ledger.enqueued(outcomes);
    }
    ensure!(ledger.stored() > ITEMS, "nothing was stored while a node was killed: {ledger}");
    Ok(())
}

/// Takes items from every node, and acks them, until none that was promised is left.
fn drain(nodes: &[Container], ledger: &mut Ledger) -> anyhow::Result<()> {
    let drained = until("every stored item is done", DRAIN_TIMEOUT, || {
        let mut came = 0;
        for node in nodes {
            let queue = Queue::at(node);
            let deliveries = queue.dequeue(queue::ITEMS_MAX)?;
            came += deliveries.len();
            ledger.delivered(&deliveries)?;
            ledger.acked(queue.ack(&deliveries)?);
        }
        // An item that comes after the last one would be one too many.
        Ok((came == 0 && ledger.missing().is_empty()).then_some(()))
    });
    drained.with_context(|| {
        let missing = ledger.missing();
        format!("{} items are missing: {:?}", missing.len(), &missing[..missing.len().min(10)])
    })
}
