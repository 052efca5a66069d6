//! Every call over gRPC: each field, each limit, each error with its details.

mod access;
mod ack;
mod audit;
pub mod browser;
mod cancel_items;
mod connections;
mod dead_letters;
mod delete_namespace;
mod dequeue;
mod disk_full;
mod enqueue;
mod explain;
mod extend_lease;
mod fates;
mod forgotten;
mod garbage;
pub mod hostile;
pub mod http1;
pub mod http2;
mod json;
mod json_bounds;
mod json_protocol;
mod list_items;
mod load;
mod memory;
mod metrics;
mod nack;
mod operations;
mod operators;
mod origins;
mod page_tokens;
mod pauses;
mod raw;
mod repeats;
mod scaling;
mod services;
mod settings;
mod settings_document;
mod share;
mod stop;
mod topics;
mod traces;
mod unread;
mod update_item;

use std::{fs, time::Duration};

use forebay_proto::{
    Status as MemberStatus,
    v1::{
        Ack, AckRequest, DequeueRequest, DequeuedItem, EnqueueItem, EnqueueRequest, EnqueueResult, Nack,
        NackRequest, TopicDemand, queue_service_client::QueueServiceClient, topic_demand::Selector,
    },
};
use tempfile::TempDir;
use tokio::time::Instant;
use tonic::{Code, Status, transport::Channel};
use tonic_types::{ErrorDetails, RpcStatusExt as _, StatusExt as _};

use crate::node::Node;

const NAMESPACE: &str = "wire";
/// A lease that no test outlives.
const LEASE: Duration = Duration::from_secs(600);

/// A node of its own for one test, on two embedded shards.
struct Wire {
    node: Node,
    client: QueueServiceClient<Channel>,
    folder: TempDir,
}

impl Wire {
    /// With the default configuration.
    async fn start() -> Self {
        Self::with("").await
    }

    /// With these sections beside `[node]` and the shards.
    async fn with(sections: &str) -> Self {
        Self::configured(sections, "", None).await
    }

    /// With these sections, in a process with at most so many file descriptors.
    async fn with_descriptors(sections: &str, descriptors: u32) -> Self {
        Self::configured(sections, "", Some(descriptors)).await
    }

    /// With one more shard, which is not migrated.
    async fn with_unmigrated(shard: &str) -> Self {
        Self::configured("", shard, None).await
    }

    async fn configured(sections: &str, shard: &str, descriptors: Option<u32>) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-wire-").tempdir().unwrap();
        let mut text = "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain_ms = 0\n".to_owned();
        // A test's own keys of [node] come before its sections.
        text.push_str(sections);
        for id in 1..=2 {
            let file = folder.path().join(format!("{id}.db"));
            text.push_str(&format!("\n[[shard]]\nid = {id}\nurl = \"sqlite://{}\"\n", file.display()));
        }
        let config = folder.path().join("forebay.toml");
        fs::write(&config, &text).unwrap();
        let path = config.display().to_string();
        Node::run(&["migrate".into(), "--config".into(), path.clone()]).await;
        if !shard.is_empty() {
            fs::write(&config, text + shard).unwrap();
            Node::run(&["migrate".into(), "--catalog".into(), "--config".into(), path.clone()]).await;
        }
        let config = path;
        let (arguments, log) = (["serve".into(), "--config".into(), config], folder.path().join("log"));
        let node = match descriptors {
            None => Node::start(&arguments, &log).await,
            Some(descriptors) => Node::start_with_descriptors(&arguments, &log, descriptors).await,
        };
        let client = QueueServiceClient::new(node.channel()).max_decoding_message_size(16 << 20);
        let wire = Self { node, client, folder };
        wire.node.owns(2).await;
        wire
    }

    fn client(&self) -> QueueServiceClient<Channel> {
        self.client.clone()
    }

    /// Enqueues these items. Returns one answer an item.
    async fn enqueue(&self, items: Vec<EnqueueItem>) -> Result<Vec<EnqueueResult>, Status> {
        let count = items.len();
        let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..EnqueueRequest::default() };
        let results = self.client().enqueue(request).await?.into_inner().results;
        assert_eq!(results.len(), count, "one answer a member");
        for result in &results {
            beside(&result.error, &result.reason, &result.retry_after);
        }
        Ok(results)
    }

    /// Enqueues items that are all stored. Returns their ids.
    async fn stored(&self, items: Vec<EnqueueItem>) -> Vec<String> {
        let results = self.enqueue(items).await.unwrap();
        let id = |result: EnqueueResult| {
            assert_eq!(result.error, None);
            assert!(!result.item_id.is_empty());
            result.item_id
        };
        results.into_iter().map(id).collect()
    }

    /// Dequeues up to `max` items of one topic with a long lease, waiting for the first.
    async fn take(&self, topic: &str, max: u32) -> Vec<DequeuedItem> {
        let wait = Some(seconds(10));
        let request = DequeueRequest { wait, lease_duration: Some(span(LEASE)), ..asked(topic, max) };
        self.client().dequeue(request).await.unwrap().into_inner().items
    }

    /// Dequeues one item. Fails if none arrives.
    async fn take_one(&self, topic: &str) -> DequeuedItem {
        self.take(topic, 1).await.pop().expect("an item within the wait")
    }

    /// Whether no item is ready now.
    async fn is_empty(&self, topic: &str) -> bool {
        let request = DequeueRequest { lease_duration: Some(span(LEASE)), ..asked(topic, 1) };
        self.client().dequeue(request).await.unwrap().into_inner().items.is_empty()
    }

    /// Acks one receipt. Returns its error.
    async fn ack(&self, receipt: &str) -> Option<MemberStatus> {
        let acks = vec![Ack { receipt: receipt.into() }];
        let request = AckRequest { namespace: NAMESPACE.into(), acks };
        let result = self.client().ack(request).await.unwrap().into_inner().results.remove(0);
        beside(&result.error, &result.reason, &result.retry_after);
        result.error
    }

    /// Nacks one delivery. Returns its error.
    async fn nack(&self, nack: Nack) -> Option<MemberStatus> {
        let request = NackRequest { namespace: NAMESPACE.into(), nacks: vec![nack] };
        let result = self.client().nack(request).await.unwrap().into_inner().results.remove(0);
        beside(&result.error, &result.reason, &result.retry_after);
        result.error
    }
}

impl Wire {
    /// The body of a page.
    async fn page(&self, path: &str) -> String {
        self.node.fetch(path).await.1
    }

    /// The node's own status.
    async fn status(&self) -> serde_json::Value {
        serde_json::from_str(&self.page("/status.json").await).unwrap()
    }

    /// Waits until `expected` holds for the node's status.
    async fn wait_for(&self, what: &str, expected: impl Fn(&serde_json::Value) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let status = self.status().await;
            if expected(&status) {
                return;
            }
            assert!(Instant::now() < deadline, "{what}: {status:#}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The value of a metric, by its name with its labels. 0 if it is not there.
    async fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics").await;
        let mut lines = page.lines().filter_map(|line| line.rsplit_once(' '));
        lines.find(|(found, _)| *found == name).map_or(0.0, |(_, value)| value.parse().unwrap())
    }

    /// Waits until `expected` holds for a metric.
    async fn wait_for_metric(&self, name: &str, expected: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let value = self.metric(name).await;
            if expected(value) {
                return;
            }
            assert!(Instant::now() < deadline, "{name} is {value}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until `number` long polls are parked.
    async fn wait_for_polls(&self, number: usize) {
        self.wait_for("polls", |status| status["engine"]["polls"] == number).await;
    }
}

/// Checks that what stands beside a member's error says the same as its details.
fn beside(error: &Option<MemberStatus>, reason: &str, retry_after: &Option<prost_types::Duration>) {
    let details = error.as_ref().map(|error| error.get_error_details()).unwrap_or_default();
    assert_eq!(reason, details.error_info().map_or("", |info| info.reason.as_str()));
    let retry = details.retry_info().and_then(|info| info.retry_delay);
    assert_eq!(*retry_after, retry.map(span));
}

fn item(topic: &str) -> EnqueueItem {
    EnqueueItem { topic: topic.into(), payload: "payload".into(), ..Default::default() }
}

fn demand(topic: &str, max_items: u32) -> TopicDemand {
    TopicDemand { selector: Some(Selector::Topic(topic.into())), max_items }
}

fn asked(topic: &str, max: u32) -> DequeueRequest {
    DequeueRequest { namespace: NAMESPACE.into(), demands: vec![demand(topic, max)], ..Default::default() }
}

fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

fn span(span: Duration) -> prost_types::Duration {
    span.try_into().unwrap()
}

fn micros(time: &Option<prost_types::Timestamp>) -> i64 {
    let time = time.as_ref().expect("a time");
    time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000
}

/// The details of a refusal. What must hold for every refusal is checked when it is made.
#[derive(Debug, PartialEq, Eq)]
struct RefusalDetails {
    code: Code,
    reason: String,
    field: Option<String>,
    quota: bool,
    item: Option<String>,
}

impl RefusalDetails {
    fn call<T: std::fmt::Debug>(answer: Result<T, Status>) -> Self {
        let status = answer.expect_err("the whole call is refused");
        Self::new(status.code(), &status.get_error_details())
    }

    fn member(error: &Option<MemberStatus>) -> Self {
        let status = error.as_ref().expect("the member is refused");
        Self::new(Code::from_i32(status.code), &status.get_error_details())
    }

    fn new(code: Code, details: &ErrorDetails) -> Self {
        let info = details.error_info().unwrap_or_else(|| panic!("{code:?} without ErrorInfo"));
        assert_eq!(info.domain, "forebay");
        let retry = details.retry_info().and_then(|info| info.retry_delay);
        let retryable = matches!(code, Code::Unavailable | Code::ResourceExhausted);
        assert_eq!(retry.is_some_and(|delay| !delay.is_zero()), retryable, "{code:?} {info:?}");
        Self {
            code,
            reason: info.reason.clone(),
            field: details.bad_request().map(|request| request.field_violations[0].field.clone()),
            quota: details.quota_failure().is_some(),
            item: info.metadata.get("item").cloned(),
        }
    }

    #[track_caller]
    fn is(&self, code: Code, reason: &str, field: Option<&str>) {
        assert_eq!((self.code, self.reason.as_str(), self.field.as_deref()), (code, reason, field));
    }

    #[track_caller]
    fn invalid(&self, field: &str) {
        self.is(Code::InvalidArgument, "INVALID_FIELD", Some(field));
    }

    #[track_caller]
    fn too_large(&self, field: &str) {
        self.is(Code::InvalidArgument, "TOO_LARGE", Some(field));
    }

    #[track_caller]
    fn lost(&self, item: &str) {
        assert_eq!((self.code, self.reason.as_str()), (Code::FailedPrecondition, "LEASE_LOST"));
        assert_eq!(self.item.as_deref(), Some(item));
    }
}
