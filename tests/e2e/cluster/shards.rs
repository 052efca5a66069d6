//! Shards are added, drained and removed while three nodes are under load.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forebay_proto::v1::{
    DeliveryPolicy, DequeueRequest, EnqueueItem, EnqueueRequest, TopicDemand,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use forebay_testkit::servers::{self, Kind};
use serde_json::Value;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tonic::{Request, transport::Channel};
use tonic_types::RpcStatusExt as _;

use super::{
    nodes::{Nodes, owned_by},
    operate::{json, run},
};
use crate::{
    drain::drain_and_check,
    history::{History, Verb},
    load::{self, Load},
    node::Node,
    rpc::Rpc,
    scenario::progress,
};

/// How long a dedupe key is remembered.
const WINDOW: Duration = Duration::from_secs(20);
/// A key is repeated within this time: sooner than its window ends, however slow the machine is.
const REPEATED_WITHIN: Duration = Duration::from_secs(8);
/// And no sooner than after this time.
const REPEATED_AFTER: Duration = Duration::from_secs(2);
/// A client that retries gets its answer within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause before a call is sent to the next node.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// The cluster follows a change within this time, on a machine that does much else.
const FOLLOWED_TIMEOUT: Duration = Duration::from_secs(30);
/// Consumers that take what the load leaves.
const TAKERS: usize = 6;

/// A key that was stored: when, and as which item.
type StoredKey = (Instant, String);

/// Fates of the keys.
#[derive(Debug, Default)]
struct Keys {
    /// Keys that were stored once.
    stored: u64,
    /// Keys that were stored and then repeated.
    repeated: u64,
    /// Attempts of which nobody knows whether they took effect, with the reason.
    unknown: Vec<String>,
}

/// Result of one key's enqueue, at last.
struct KeyResult {
    /// The item's id.
    id: String,
    /// It was there before.
    duplicate: bool,
    /// An earlier attempt may have stored it.
    attempted: bool,
}

/// Why an attempt did not answer with an item.
enum AttemptFailure {
    /// Nothing of it happened.
    NotDone(String),
    /// It may have happened.
    Unknown(String),
}

/// A client that stores items under dedupe keys, and repeats them. Like every client it sends a call that was
/// refused for now to the next node.
struct KeyClient {
    nodes: Vec<Channel>,
    name: u32,
    sent: u64,
    recent: BTreeMap<u64, StoredKey>,
    keys: Keys,
}

impl KeyClient {
    fn start(nodes: Vec<Channel>, name: u32, stop: Arc<AtomicBool>) -> JoinHandle<Keys> {
        let client = Self { nodes, name, sent: 0, recent: BTreeMap::new(), keys: Keys::default() };
        tokio::spawn(client.run(stop))
    }

    async fn run(mut self, stop: Arc<AtomicBool>) -> Keys {
        while !stop.load(Ordering::Relaxed) {
            self.sent += 1;
            let key = self.sent;
            let KeyResult { id, duplicate, attempted } = self.put(key).await;
            assert!(
                !duplicate || attempted,
                "key {key} of client {} is new, and is item {id} already",
                self.name
            );
            self.keys.stored += 1;
            self.recent.insert(key, (Instant::now(), id));
            self.take().await;
            self.recent.retain(|_, (at, _)| at.elapsed() < REPEATED_WITHIN);
            // The shards may have changed between the two calls.
            while let Some(entry) = self.recent.first_entry()
                && entry.get().0.elapsed() > REPEATED_AFTER
            {
                let (key, (_, first)) = entry.remove_entry();
                let KeyResult { id, duplicate, .. } = self.put(key).await;
                assert!(
                    duplicate && id == first,
                    "key {key} of client {} is item {first}, and was stored again as {id}",
                    self.name
                );
                self.keys.repeated += 1;
            }
        }
        self.keys
    }

    /// Takes what is there, so that no shard keeps items. They are delivered at most once, and need no ack.
    async fn take(&self) {
        for channel in &self.nodes {
            let demand = TopicDemand { selector: Some(Selector::Topic("keys".into())), max_items: 100 };
            let request = DequeueRequest {
                namespace: "keys".into(),
                demands: vec![demand],
                ..DequeueRequest::default()
            };
            // A node without a shard refuses it, and one whose shard moves.
            let _ = QueueServiceClient::new(channel.clone()).dequeue(request).await;
        }
    }

    /// Enqueues an item under a key, until it is answered with an item.
    async fn put(&mut self, key: u64) -> KeyResult {
        let begun = Instant::now();
        let (mut refusal, mut attempted) = (String::new(), false);
        for channel in self.nodes.iter().cycle() {
            assert!(begun.elapsed() < ANSWER_TIMEOUT, "key {key}: no answer, and at last {refusal}");
            match enqueue(channel, &format!("{}-{key}", self.name)).await {
                Ok((id, duplicate)) => return KeyResult { id, duplicate, attempted },
                Err(AttemptFailure::NotDone(why)) => refusal = why,
                Err(AttemptFailure::Unknown(why)) => {
                    self.keys.unknown.push(why.clone());
                    (refusal, attempted) = (why, true);
                }
            }
            sleep(RETRY_DELAY).await;
        }
        unreachable!("nodes are asked in turn, without an end")
    }
}

/// One attempt: an item's id, and whether it was there before. A refusal that does not pass fails the test.
async fn enqueue(channel: &Channel, key: &str) -> Result<(String, bool), AttemptFailure> {
    let item = EnqueueItem {
        topic: "keys".into(),
        dedupe_key: key.into(),
        delivery_policy: DeliveryPolicy::AtMostOnce.into(),
        ..EnqueueItem::default()
    };
    let mut request = Request::new(EnqueueRequest {
        namespace: "keys".into(),
        items: vec![item],
        ..EnqueueRequest::default()
    });
    request.set_timeout(Duration::from_secs(5));
    let passing = ["SHARD_UNAVAILABLE", "NOT_OWNER", "OVERLOADED"];
    match QueueServiceClient::new(channel.clone()).enqueue(request).await {
        Ok(answer) => {
            let result = answer.into_inner().results.remove(0);
            let Some(error) = result.error else { return Ok((result.item_id, result.duplicate)) };
            let reason = error.get_details_error_info().map(|info| info.reason).unwrap_or_default();
            if reason == "OUTCOME_UNKNOWN" {
                return Err(AttemptFailure::Unknown(error.message));
            }
            assert!(passing.contains(&reason.as_str()), "{error:?}");
            Err(AttemptFailure::NotDone(error.message))
        }
        Err(status) => Err(AttemptFailure::Unknown(status.to_string())),
    }
}

fn channels(nodes: &[Node]) -> Vec<Channel> {
    nodes.iter().map(Node::channel).collect()
}

/// Waits until these shards are owned, and the nodes are within one of each other.
async fn spread(nodes: &[Node], shards: &[u64]) {
    let begun = Instant::now();
    loop {
        let mut owned = Vec::new();
        let mut counts = Vec::new();
        for node in nodes {
            let of_node = owned_by(node).await;
            counts.push(of_node.len());
            owned.extend(of_node);
        }
        owned.sort_unstable();
        let even = counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1;
        if owned == shards && even {
            println!("{shards:?} are spread {counts:?} after {:?}", begun.elapsed());
            return;
        }
        assert!(begun.elapsed() < FOLLOWED_TIMEOUT, "{owned:?} of {shards:?} are owned: {counts:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// The shard of this number, as a node lists it.
async fn listed(addr: &str, id: u64) -> Option<Value> {
    let list = json(&["shard", "list", "--addr", addr, "--output", "json"]).await;
    list["shards"].as_array().unwrap().iter().find(|shard| shard["id"] == id).cloned()
}

/// Removes a shard, once nothing holds it up any more. Returns what has held it up.
async fn remove(config: &str, shard: &str) -> Vec<String> {
    let (begun, mut why) = (Instant::now(), Vec::new());
    loop {
        let (done, stdout, stderr) = run(&["shard", "remove", shard, "--config", config]).await;
        if done {
            assert_eq!(stdout, format!("shard {shard} was removed\n"));
            return why;
        }
        assert!(stderr.contains(&format!("shard {shard} still has ")), "{stderr}");
        assert!(begun.elapsed() < WINDOW + FOLLOWED_TIMEOUT, "{stderr}");
        why.push(stderr);
        sleep(Duration::from_millis(500)).await;
    }
}

/// Takes and acks all items, through all nodes, until it is to stop.
async fn take_all(history: &Arc<History>, nodes: Vec<Channel>, stop: &AtomicBool) {
    let topics = load::topics();
    let takers = nodes.into_iter().cycle().take(TAKERS).map(async |node| {
        while !stop.load(Ordering::Relaxed) {
            let mut rpc = Rpc::new(node.clone(), history);
            let wait = Duration::from_millis(200);
            let items = rpc.dequeue(&topics, 100, wait, Duration::from_secs(5)).await.unwrap_or_default();
            let receipts: Vec<String> = items.into_iter().map(|item| item.receipt).collect();
            match receipts.is_empty() {
                true => sleep(wait).await,
                false => drop(rpc.settle(Verb::Ack, &receipts).await),
            }
        }
    });
    futures_util::future::join_all(takers).await;
}

async fn shards_change_under_load(kind: Kind) {
    let mut cluster = Nodes::new(kind, 3, 4).await;
    cluster.configure(&format!("\n[engine]\ndedupe_window_ms = {}\n", WINDOW.as_millis()));
    let mut nodes = cluster.start_all().await;
    spread(&nodes, &[1, 2, 3, 4]).await;
    let config = cluster.config(0);
    let history = Arc::new(History::new());
    let load = Load::start(&history, channels(&nodes), 21);
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4).map(|name| KeyClient::start(channels(&nodes), name, stop.clone())).collect();
    progress(&history, "load on four shards", 300).await;

    let url = servers::shared(kind).await.fresh_url().await;
    let (done, stdout, stderr) = run(&["shard", "add", &url, "--addr", &nodes[0].grpc]).await;
    assert!(done && stdout == "shard 5 was added\n", "{stdout}{stderr}");
    let (done, stdout, stderr) = run(&["shard", "add", &url, "--addr", &nodes[1].grpc]).await;
    assert!(done && stdout == "shard 5 was added\n", "to repeat it does no harm: {stdout}{stderr}");
    cluster.shards = 5;
    spread(&nodes, &[1, 2, 3, 4, 5]).await;
    progress(&history, "load on five shards", 300).await;

    let (done, _, stderr) = run(&["shard", "remove", "1", "--config", &config]).await;
    assert!(!done && stderr.contains("shard 1 takes new items: drain it first"), "{stderr}");
    let (done, _, stderr) = run(&["shard", "drain", "1", "--addr", &nodes[0].grpc]).await;
    assert!(done, "{stderr}");
    let shown = listed(&nodes[0].grpc, 1).await.unwrap();
    let states = ["SHARD_STATE_DRAINING", "SHARD_STATE_ACTIVE"];
    assert!(states.iter().any(|state| shown["state"] == *state), "{shown}");
    progress(&history, "load while a shard drains", 300).await;
    // Under a load that grows, items of low priority would stay in the shard: better ones of all nodes come
    // before them.
    let removed = AtomicBool::new(false);
    let removing = async {
        let why = remove(&config, "1").await;
        removed.store(true, Ordering::Relaxed);
        why
    };
    let taking = take_all(&history, nodes.iter().map(Node::channel).collect(), &removed);
    let (why, ()) = tokio::join!(removing, taking);
    println!("held up {} times, at last by {:?}", why.len(), why.last());
    assert!(why.iter().any(|why| why.contains("dedupe keys whose window ends at ")), "{why:?}");
    cluster.shards = 4;
    spread(&nodes, &[2, 3, 4, 5]).await;
    assert_eq!(listed(&nodes[0].grpc, 1).await, None);
    progress(&history, "load on the shards that are left", 300).await;

    stop.store(true, Ordering::Relaxed);
    for client in clients {
        let keys = client.await.unwrap();
        println!("{keys:?}");
        assert!(keys.repeated > 0, "{keys:?}");
    }
    load.stop().await;
    let last = nodes.pop().unwrap();
    for node in nodes {
        let (status, took) = node.terminate().await;
        assert!(status.success(), "{status} after {took:?}");
    }
    cluster.all_owned(&[&last]).await;
    drain_and_check(&history, last.channel()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_added_drained_and_removed_under_load_on_mariadb() {
    shards_change_under_load(Kind::MariaDb).await;
}
