//! The dashboard in a real browser: each page and each act, as people meet them.

mod acts;
mod alarms;
mod chosen;
mod chromium;
mod dead_letters;
mod levers;
mod looks;
mod pages;
mod rights;
mod settings;

use std::time::Duration;

use forebay_proto::v1::{
    AuditRecord, DequeueRequest, DequeuedItem, EnqueueItem, EnqueueRequest, GetTopicRequest,
    ListAuditRecordsRequest, Nack, NackRequest, Topic, TopicDemand, admin_service_client::AdminServiceClient,
    queue_service_client::QueueServiceClient, topic_demand::Selector,
};
use tempfile::TempDir;
use tonic::transport::Channel;

use self::chromium::Chromium;
use crate::node::Node;

/// The tenant of these tests.
const NAMESPACE: &str = "shop";
/// Script that a browser must not run.
const SCRIPT: &str = "<script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">";

/// A node as `forebay dev` starts it, with something to see.
struct Stage {
    node: Node,
    client: QueueServiceClient<Channel>,
    /// An item of each state: ready, leased, scheduled, dead.
    items: [String; 4],
    _folder: TempDir,
}

impl Stage {
    /// Topic `mail` has an item in each state, and three dead letters of two kinds.
    async fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-page-").tempdir().unwrap();
        let (data, any) = (folder.path().join("data").display().to_string(), "127.0.0.1:0");
        let arguments = ["dev", "--data-dir", &data, "--grpc", any, "--http", any].map(str::to_owned);
        let node = Node::start(&arguments, &folder.path().join("log")).await;
        let client = QueueServiceClient::new(node.channel());
        let mut stage = Self { node, client, items: Default::default(), _folder: folder };
        stage.fill().await;
        stage
    }

    async fn fill(&mut self) {
        let mut dead = String::new();
        for reason in ["no customer 17", "no customer 18", SCRIPT] {
            dead = self.bury("mail", reason).await;
        }
        let leased = self.enqueue("mail", "leased", None).await;
        assert_eq!(self.take("mail").await.item_id, leased);
        let scheduled = self.enqueue("mail", "later", Some(Duration::from_secs(3_600))).await;
        let ready = self.enqueue("mail", SCRIPT, None).await;
        self.items = [ready, leased, scheduled, dead];
    }

    /// Makes a dead letter. Returns its id. Nothing else may be ready in the topic.
    async fn bury(&self, topic: &str, reason: &str) -> String {
        let id = self.enqueue(topic, SCRIPT, None).await;
        let receipt = self.take(topic).await.receipt;
        let nack = Nack { receipt, dead_letter: true, reason: reason.to_owned(), ..Nack::default() };
        let request = NackRequest { namespace: NAMESPACE.to_owned(), nacks: vec![nack] };
        let answer = self.client.clone().nack(request).await.unwrap().into_inner();
        assert_eq!(answer.results[0].error, None);
        id
    }

    /// Returns the records of the audit log, the latest first.
    async fn audit(&self) -> Vec<AuditRecord> {
        let request = ListAuditRecordsRequest { namespace: "-".to_owned(), ..Default::default() };
        self.admin().list_audit_records(request).await.unwrap().into_inner().records
    }

    /// Calls of operators.
    fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.node.channel())
    }

    /// Figures of a topic.
    async fn topic(&self, topic: &str) -> Topic {
        let request = GetTopicRequest { namespace: NAMESPACE.to_owned(), topic: topic.to_owned() };
        self.admin().get_topic(request).await.unwrap().into_inner().topic.unwrap()
    }

    /// Enqueues an item. Returns its id.
    async fn enqueue(&self, topic: &str, payload: &str, delay: Option<Duration>) -> String {
        let schedule =
            delay.map(|delay| forebay_proto::v1::enqueue_item::Schedule::Delay(delay.try_into().unwrap()));
        let item = EnqueueItem {
            topic: topic.to_owned(),
            payload: payload.to_owned().into(),
            schedule,
            ..EnqueueItem::default()
        };
        let (namespace, request_id) = (NAMESPACE.to_owned(), String::new());
        let request =
            EnqueueRequest { namespace, items: vec![item], request_id, ..EnqueueRequest::default() };
        let mut results = self.client.clone().enqueue(request).await.unwrap().into_inner().results;
        let result = results.remove(0);
        assert_eq!(result.error, None);
        result.item_id
    }

    /// Leases an item.
    async fn take(&self, topic: &str) -> DequeuedItem {
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let demand = TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items: 1 };
        let request = DequeueRequest {
            namespace: NAMESPACE.to_owned(),
            demands: vec![demand],
            wait: seconds(10),
            lease_duration: seconds(600),
            consumer: "worker-1".to_owned(),
            ..DequeueRequest::default()
        };
        let mut items = self.client.clone().dequeue(request).await.unwrap().into_inner().items;
        items.pop().expect("an item within the wait")
    }

    /// The address of a page.
    fn at(&self, page: &str) -> String {
        format!("http://{}/{page}", self.node.http)
    }

    /// Each page, by a name for its picture.
    fn pages(&self) -> Vec<(&'static str, String)> {
        let [ready, leased, scheduled, dead] = &self.items;
        let item = |id: &String| format!("item?ns={NAMESPACE}&id={id}");
        let tab = |tab: &str| format!("topic?ns={NAMESPACE}&name=mail&tab={tab}");
        let confirm = |action: &str| format!("confirm?action={action}&ns={NAMESPACE}&name=mail");
        vec![
            ("overview", String::new()),
            ("topics", "topics".to_owned()),
            ("topics-of", format!("topics?ns={NAMESPACE}&sort=name")),
            ("namespace", format!("namespace?ns={NAMESPACE}")),
            ("namespace-none", "namespace?ns=nobody".to_owned()),
            ("topics-none", format!("topics?ns={NAMESPACE}&q=nothing")),
            ("topic", format!("topic?ns={NAMESPACE}&name=mail")),
            ("topic-leased", tab("leased")),
            ("topic-scheduled", tab("scheduled")),
            ("topic-dead", tab("dead")),
            ("topic-priorities", tab("priorities")),
            ("topic-settings", tab("settings")),
            ("topic-consumers", tab("consumers")),
            ("topic-history", tab("history")),
            ("item-ready", item(ready)),
            ("item-leased", item(leased)),
            ("item-scheduled", item(scheduled)),
            ("item-dead", item(dead)),
            ("dead-letters", format!("dead-letters?ns={NAMESPACE}")),
            ("dead-letters-of", format!("dead-letters?ns={NAMESPACE}&topic=mail")),
            ("confirm-purge", confirm("purge")),
            ("confirm-redrive", confirm("redrive")),
            ("confirm-redrive-item", format!("{}&id={dead}", confirm("redrive"))),
            ("confirm-delete-dead", confirm("delete-dead")),
            ("confirm-reset-leases", confirm("reset-leases")),
            ("operations", format!("operations?ns={NAMESPACE}")),
            ("consumers", "consumers".to_owned()),
            ("shards", "shards".to_owned()),
            ("shard", "shards?id=1".to_owned()),
            ("nodes", "nodes".to_owned()),
            ("access", "access".to_owned()),
            ("audit", "audit".to_owned()),
            ("search", "search?q=mai".to_owned()),
            ("search-item", format!("search?q={ready}&ns={NAMESPACE}")),
        ]
    }

    /// Opens a page.
    async fn open(&self, browser: &Chromium, page: &str) {
        browser.open(&self.at(page)).await;
    }
}
