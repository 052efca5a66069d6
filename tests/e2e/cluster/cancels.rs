//! Callers that go away, or whose deadline passes, at any moment of a call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::EnqueueItem;
use forebay_testkit::{proxy::Ways as Directions, servers::Kind};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{task::JoinSet, time::timeout};
use tonic::transport::Channel;

use super::{nodes::metric_becomes, ways::Ways};
use crate::{
    history::{Call, Event, History, Outcome, SettlementEnd, Verb},
    load::{LEASE, topics},
    rpc::{Rpc, payload},
};

/// Callers that go away.
const CALLERS: u64 = 6;
/// Calls of each of them.
const CALLS: u32 = 120;
/// A call takes about four ways to the shard, so it is given up at any of its awaits.
const PATIENCE_MS_MAX: u64 = 40;
/// Holds up what nodes and shards tell each other, so that awaits take long.
const DELAY: Duration = Duration::from_millis(3);

/// A caller with little patience.
struct Caller {
    /// Chooses its calls, and how long it waits.
    random: StdRng,
    /// Knows one node.
    channel: Channel,
    /// Where its calls are recorded.
    history: Arc<History>,
    /// The number of the next item.
    numbers: Arc<AtomicU64>,
    /// Deliveries that are not settled.
    receipts: Vec<String>,
    /// How many calls have ended without an answer.
    given_up: u32,
}

impl Caller {
    async fn run(mut self) -> u32 {
        for _ in 0..CALLS {
            let patience = Duration::from_millis(self.random.random_range(0..PATIENCE_MS_MAX));
            // With a deadline the node knows when the caller goes. Without one the caller just goes.
            let told = self.random.random_bool(0.5);
            let deadline = if told { patience.max(Duration::from_millis(1)) } else { 100 * LEASE };
            let patience = if told { 10 * LEASE } else { patience };
            match self.random.random_range(0..3) {
                0 => self.enqueue(deadline, patience).await,
                1 => self.dequeue(deadline, patience).await,
                _ => self.settle(deadline, patience).await,
            }
        }
        self.given_up
    }

    async fn enqueue(&mut self, deadline: Duration, patience: Duration) {
        let first = self.numbers.fetch_add(5, Ordering::Relaxed);
        let item = |number: u64| EnqueueItem {
            topic: topics()[number as usize % topics().len()].clone(),
            payload: payload(number).into(),
            max_attempts: 1_000,
            ..EnqueueItem::default()
        };
        let items: Vec<(u64, EnqueueItem)> =
            (first..first + 5).map(|number| (number, item(number))).collect();
        let request_id = if self.random.random_bool(0.5) { format!("{first:x}") } else { String::new() };
        let mut rpc = Rpc::within(self.channel.clone(), &self.history, deadline);
        let began = self.history.now();
        if timeout(patience, rpc.enqueue(&items, &request_id)).await.is_err() {
            self.given_up += 1;
            let call = Call { began, ended: self.history.now() };
            for (item, _) in items {
                let outcome = Outcome::Unknown("the caller went away".into());
                self.history.record(Event::Enqueue { call, item, outcome });
            }
        }
    }

    async fn dequeue(&mut self, deadline: Duration, patience: Duration) {
        let mut rpc = Rpc::within(self.channel.clone(), &self.history, deadline);
        let topics = topics();
        match timeout(patience, rpc.dequeue(&topics, 3, Duration::from_millis(30), LEASE)).await {
            Ok(Some(items)) => self.receipts.extend(items.into_iter().map(|item| item.receipt)),
            Ok(None) | Err(_) => self.given_up += 1,
        }
    }

    async fn settle(&mut self, deadline: Duration, patience: Duration) {
        let receipts = std::mem::take(&mut self.receipts);
        if receipts.is_empty() {
            return;
        }
        let verbs = [Verb::Ack, Verb::Nack, Verb::Extend(LEASE)];
        let verb = verbs[self.random.random_range(0..verbs.len())];
        let mut rpc = Rpc::within(self.channel.clone(), &self.history, deadline);
        let began = self.history.now();
        if timeout(patience, rpc.settle(verb, &receipts)).await.is_err() {
            self.given_up += 1;
            let call = Call { began, ended: self.history.now() };
            for receipt in receipts {
                let settled = SettlementEnd::Unknown("the caller went away".into());
                self.history.record(Event::Settle { call, verb, receipt, settled });
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_22_callers_that_go_away_leave_nothing_behind() {
    let mut ways = Ways::new(Kind::MariaDb, 2, 2, 61).await;
    let before = ways.take_overs().await;
    ways.proxies.iter().for_each(|proxy| proxy.delay(Directions::Both, DELAY));
    let numbers = Arc::new(AtomicU64::new(7 << 32));
    let mut callers = JoinSet::new();
    for index in 0..CALLERS {
        let caller = Caller {
            random: StdRng::seed_from_u64(index),
            channel: ways.nodes[index as usize % ways.nodes.len()].channel(),
            history: ways.history.clone(),
            numbers: numbers.clone(),
            receipts: Vec::new(),
            given_up: 0,
        };
        callers.spawn(caller.run());
    }
    let given_up: u32 = callers.join_all().await.into_iter().sum();
    println!("{given_up} calls were given up");
    assert!(given_up > 100, "only {given_up} calls were given up");
    assert_eq!(ways.take_overs().await, before, "no shard was lost with a caller");
    ways.heal().await;
    let of = |budget| format!("forebay_memory_bytes{{budget=\"{budget}\"}}");
    for gauge in ["forebay_calls_at_work", &of("enqueues"), &of("polls")] {
        metric_becomes(&ways.nodes, gauge, |value| value == 0.0).await;
    }
    ways.end().await;
}
