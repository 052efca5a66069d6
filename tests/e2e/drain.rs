//! The end of every test: everything that was accepted is dequeued and acked, and the history is checked.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tonic::{Code, transport::Channel};

use crate::{
    check::check,
    history::{Counts, Event, History, Outcome, SettlementEnd, Verb},
    load::{LEASE, topics},
    rpc::Rpc,
};

/// Leases of a killed node end within the lease, and up to 5 s later because acks in transit come first. The
/// rest is for a slow machine.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// The long poll of each dequeue.
const WAIT: Duration = Duration::from_millis(500);
/// An owner is sure of its shard again within this time.
const SURE_WITHIN: Duration = Duration::from_secs(20);
/// The pause before an owner that was not is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// Items of one dequeue and topic.
const BATCH_ITEMS: u32 = 150;

/// Acks everything that is left, and panics with every violation in the history. Returns the counts.
pub async fn drain_and_check(history: &Arc<History>, channel: Channel) -> Counts {
    let mut rpc = Rpc::new(channel, history);
    let topics = topics();
    let begun = history.now();
    let mut quiet_since = begun;
    loop {
        match rpc.dequeue(&topics, BATCH_ITEMS, WAIT, LEASE).await {
            Some(items) if !items.is_empty() => {
                quiet_since = history.now();
                let receipts: Vec<String> = items.into_iter().map(|item| item.receipt).collect();
                rpc.settle(Verb::Ack, &receipts).await;
            }
            Some(_) => {}
            None => quiet_since = history.now(),
        }
        let waited = history.now() - begun;
        // Quiet for a lease: items abandoned just before the drain are delivered again by then.
        if history.now() - quiet_since > LEASE + WAIT
            && (waited > DRAIN_TIMEOUT || history.inspect(open) == 0)
        {
            break;
        }
    }
    let violations = history.inspect(check);
    let counts = history.counts();
    let shown: Vec<String> = violations
        .iter()
        .take(20)
        .map(|violation| format!("{}: {}", violation.invariant, violation.seen))
        .collect();
    assert!(
        violations.is_empty(),
        "{} violations, {counts:?}\n{}\n{}",
        violations.len(),
        shown.join("\n"),
        history.failure_reasons()
    );
    // Shown with --nocapture, as in `cargo xtask soak`.
    println!("drained within {:?}: {counts:?}", history.now() - begun);
    let active = active_topics(&mut rpc).await;
    assert!(active.is_empty(), "topics have ready items although everything is acked: {active:?}");
    counts
}

/// The topics that have ready items. An owner that is not sure of its shard refuses to say,
/// as its database may be slow for a moment.
async fn active_topics(rpc: &mut Rpc<'_>) -> Vec<String> {
    let deadline = Instant::now() + SURE_WITHIN;
    loop {
        match rpc.active_topics().await {
            Ok(topics) => return topics,
            Err(refused) => assert!(
                refused.code() == Code::Unavailable && Instant::now() < deadline,
                "the topics can't be asked for: {refused:?}"
            ),
        }
        sleep(ASK_AGAIN).await;
    }
}

/// How many items were accepted and are not known to be acked.
fn open(events: &[Event]) -> usize {
    let mut open: HashSet<&str> = HashSet::new();
    let mut by_receipt = HashMap::new();
    for event in events {
        match event {
            Event::Enqueue { outcome: Outcome::Ok(id), .. } => {
                open.insert(id);
            }
            Event::Delivery { id, receipt, .. } => {
                by_receipt.insert(receipt.as_str(), id.as_str());
            }
            _ => {}
        }
    }
    for event in events {
        if let Event::Settle {
            verb: Verb::Ack,
            receipt,
            settled: SettlementEnd::Ok | SettlementEnd::Unknown(_),
            ..
        } = event
            && let Some(id) = by_receipt.get(receipt.as_str())
        {
            open.remove(id);
        }
    }
    open.len()
}
