//! Items that came into a topic and a namespace are those that are there and those of each way out, in both
//! kinds of stores, whoever owns the shard meanwhile.

use std::{sync::Arc, time::Duration};

use forebay_engine::{
    ChangeCall, DequeueCall, Engine, EnqueueCall, EnqueueOutcome, ItemChange, NackAction, NackOf, NewItem,
    Settings, TopicFigures, TopicScope, TopicsCall,
};
use forebay_store::{
    MySqlOptions, MySqlServers, OperationId, OperationKind, OperationOrder, OperationSpec, OperationWish,
    Shard, SqliteShard,
};
use forebay_testkit::{
    NAMESPACE, dequeue,
    servers::{self, Kind},
};
use forebay_types::{
    Body, ClusterId, DeliveryPolicy, ItemId, Receipt, Schedule, ShardId, SystemClock, Timestamp,
};
use tokio::time::{Instant, sleep};

use crate::contract::Folder;

const SHARD: ShardId = ShardId(1);
/// Dead letters of this namespace are deleted soon.
const BRIEF: &str = "brief";
/// How long something may take.
const TIMEOUT: Duration = Duration::from_secs(30);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// An item with a payload.
fn item(topic: &str) -> NewItem {
    NewItem { body: Body { payload: "p".into(), ..Body::default() }, ..forebay_testkit::item(topic) }
}

/// Where the shard is.
enum Place {
    Sqlite(Folder),
    Server(String),
}

impl Place {
    fn shard(&self) -> Arc<dyn Shard> {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteShard::new(SHARD, folder.0.join("1.db"))),
            Self::Server(url) => {
                let options = MySqlOptions::default();
                Arc::new(MySqlServers::default().shard(SHARD, url, &options).expect("a good URL"))
            }
        }
    }

    /// An owner of the shard, which forgets topics without items after so long.
    async fn start(&self, idle_topic: Duration) -> Engine {
        let settings = Settings {
            dead_letter_retentions: [(BRIEF.to_owned(), ms(50))].into(),
            idle_topic,
            ..Settings::default()
        };
        let shards = vec![(SHARD, self.shard())];
        let engine = Engine::start(
            settings,
            "here:1".into(),
            shards,
            Arc::new(SystemClock::default()),
            Arc::new(()),
            7,
        );
        engine.ready().await;
        engine
    }
}

/// An owner, and what is asked of it.
struct Owner {
    engine: Engine,
    place: Place,
    operations: u8,
}

impl Owner {
    /// Another owner takes the shard over.
    async fn succeed(self) -> Self {
        self.succeed_with(2 * TIMEOUT).await
    }

    /// Another owner takes the shard over that forgets topics without items after so long.
    async fn succeed_with(self, idle_topic: Duration) -> Self {
        self.engine.stop().await;
        Self { engine: self.place.start(idle_topic).await, ..self }
    }

    async fn put(&self, namespace: &str, items: Vec<NewItem>) -> Vec<ItemId> {
        let call = EnqueueCall { namespace: namespace.into(), items, ..EnqueueCall::default() };
        let stored = self.engine.enqueue(call).await.unwrap();
        stored.into_iter().map(|result| result.map(|EnqueueOutcome { id, .. }| id).unwrap()).collect()
    }

    /// Takes items. At-most-once ones have no receipt.
    async fn take(&self, namespace: &str, count: usize) -> Vec<Option<Receipt>> {
        let call = DequeueCall { namespace: namespace.into(), wait: TIMEOUT / 2, ..dequeue(&["t"], count) };
        let items = self.engine.dequeue(call).await.unwrap();
        assert_eq!(items.len(), count);
        items.into_iter().map(|item| item.receipt).collect()
    }

    async fn nack(&self, namespace: &str, receipt: Receipt, action: NackAction) {
        let nack = NackOf { receipt, action, metadata: None, reason: "why".into() };
        let settled = self.engine.nack(namespace.into(), vec![nack], None).await.unwrap();
        assert!(settled[0].is_ok(), "{settled:?}");
    }

    /// Stores an item that becomes a dead letter.
    async fn die(&self, namespace: &str) -> ItemId {
        let id = self.put(namespace, vec![item("t")]).await[0];
        let receipt = self.take(namespace, 1).await[0].unwrap();
        self.nack(namespace, receipt, NackAction::DeadLetter).await;
        id
    }

    async fn cancel(&self, id: ItemId) {
        let call = ChangeCall {
            namespace: NAMESPACE.into(),
            items: vec![id],
            change: ItemChange::Cancel,
            dry_run: false,
        };
        let changed = self.engine.change_items(call).await.unwrap();
        assert!(changed[0].is_ok(), "{changed:?}");
    }

    /// Runs an operation to its end.
    async fn operate(&mut self, kind: OperationKind, to_topic: &str) {
        self.operations += 1;
        let spec = OperationSpec {
            id: OperationId([self.operations; 16]),
            kind,
            namespace: NAMESPACE.into(),
            topic: "t".into(),
            filter: String::new(),
            leased: true,
            to_topic: to_topic.into(),
            ttl: None,
            update: None,
            max_redrives: None,
            limits: None,
            shards: vec![SHARD],
            home: SHARD,
            who: String::new(),
            reason: String::new(),
            started_at: Timestamp::from_micros(1_700_000_000_000_000),
            request: [0; 16],
            wish: OperationWish { version: 1, rate: 1_000, active: 1, cancelled: false },
        };
        let id = spec.id;
        self.engine.order(OperationOrder::Begin(Box::new(spec)), None).await.unwrap()[0].1.as_ref().unwrap();
        let begun = Instant::now();
        loop {
            let seen = self.engine.operations(Some(NAMESPACE.into()), Some(id)).await.unwrap();
            if seen.parts.iter().any(|part| part.progress.ended_at.is_some()) {
                return;
            }
            assert!(begun.elapsed() < TIMEOUT, "{seen:?}");
            sleep(ms(5)).await;
        }
    }

    /// The topics of a namespace, and the forgotten ones as one without a name.
    async fn topics(&self, namespace: &str) -> Vec<TopicFigures> {
        let scope = TopicScope { namespace: Some(namespace.into()), prefix: String::new() };
        let call = TopicsCall { scope, after: None, limit: 100, due: false, forgotten: true };
        let begun = Instant::now();
        loop {
            let page = self.engine.list_topics(call.clone()).await.unwrap();
            // A new owner reads them after it serves.
            if page.counted == [SHARD] {
                return page.topics;
            }
            assert!(begun.elapsed() < TIMEOUT, "nobody counts");
            sleep(ms(5)).await;
        }
    }

    /// Waits until so much of a namespace expired and was removed. All items that came in are there or left.
    #[track_caller]
    fn adds_up<'a>(
        &'a self,
        namespace: &'a str,
        expired: u64,
        removed: u64,
    ) -> impl Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            loop {
                let topics = self.topics(namespace).await;
                let sum = |of: fn(&TopicFigures) -> u64| topics.iter().map(of).sum::<u64>();
                let there = sum(|it| it.ready + it.leased + it.scheduled + it.dead);
                let [enqueued, acked, gone, taken] = [
                    sum(|it| it.counted.map_or(0, |counted| counted.enqueued)),
                    sum(|it| it.counted.map_or(0, |counted| counted.acked)),
                    sum(|it| it.counted.map_or(0, |counted| counted.expired)),
                    sum(|it| it.counted.map_or(0, |counted| counted.removed)),
                ];
                let is_whole = enqueued == there + acked + gone + taken;
                if (gone, taken, is_whole) == (expired, removed, true) {
                    return;
                }
                assert!(
                    begun.elapsed() < TIMEOUT,
                    "{caller}: {expired} and {removed} are to be gone: {topics:?}"
                );
                sleep(ms(5)).await;
            }
        }
    }
}

async fn every_way_out(place: Place) {
    place.shard().migrate(ClusterId::default()).await.unwrap();
    let owner = Owner { engine: place.start(2 * TIMEOUT).await, place, operations: 0 };

    // Acked, and delivered at most once.
    owner.put(NAMESPACE, vec![item("t"), item("t")]).await;
    let receipts: Vec<Receipt> = owner.take(NAMESPACE, 2).await.into_iter().flatten().collect();
    let acked = owner.engine.ack(NAMESPACE.into(), receipts, None).await.unwrap();
    assert!(acked.iter().all(Result::is_ok));
    owner.put(NAMESPACE, vec![NewItem { policy: DeliveryPolicy::AtMostOnce, ..item("t") }]).await;
    owner.take(NAMESPACE, 1).await;
    owner.adds_up(NAMESPACE, 0, 0).await;

    // Expired: ready, scheduled, and leased.
    let expiring = NewItem { ttl: Some(ms(60)), ..item("t") };
    let later = NewItem { ttl: Some(ms(60)), schedule: Schedule::Delay(ms(59)), ..item("t") };
    owner.put(NAMESPACE, vec![expiring.clone(), later]).await;
    owner.adds_up(NAMESPACE, 2, 0).await;
    let owner = owner.succeed().await;
    owner.adds_up(NAMESPACE, 2, 0).await;
    owner.put(NAMESPACE, vec![NewItem { ttl: Some(ms(300)), ..item("t") }]).await;
    let receipt = owner.take(NAMESPACE, 1).await[0].unwrap();
    sleep(ms(320)).await;
    owner.nack(NAMESPACE, receipt, NackAction::Fail(None)).await;
    owner.adds_up(NAMESPACE, 3, 0).await;

    // Cancelled: ready, leased, and dead.
    let ready = owner.put(NAMESPACE, vec![item("t")]).await[0];
    owner.cancel(ready).await;
    let leased = owner.put(NAMESPACE, vec![item("t")]).await[0];
    owner.take(NAMESPACE, 1).await;
    owner.cancel(leased).await;
    let dead = owner.die(NAMESPACE).await;
    owner.cancel(dead).await;
    let mut owner = owner.succeed().await;
    owner.adds_up(NAMESPACE, 3, 3).await;

    // Purged, and dead letters that are deleted.
    owner.put(NAMESPACE, vec![item("t"), NewItem { schedule: Schedule::Delay(TIMEOUT), ..item("t") }]).await;
    owner.operate(OperationKind::Purge, "").await;
    owner.die(NAMESPACE).await;
    owner.operate(OperationKind::DeleteDead, "").await;
    owner.adds_up(NAMESPACE, 3, 6).await;

    // A dead letter that is an item of its topic again stays. One that goes to another topic leaves this one.
    owner.die(NAMESPACE).await;
    owner.operate(OperationKind::Redrive, "").await;
    owner.adds_up(NAMESPACE, 3, 6).await;
    owner.operate(OperationKind::Purge, "").await;
    owner.die(NAMESPACE).await;
    owner.operate(OperationKind::Redrive, "other").await;
    owner.adds_up(NAMESPACE, 3, 8).await;

    // A dead letter is there.
    owner.die(NAMESPACE).await;
    let owner = owner.succeed().await;
    owner.adds_up(NAMESPACE, 3, 8).await;

    // Kept for long enough, also where memory has forgotten the topic.
    owner.die(BRIEF).await;
    owner.adds_up(BRIEF, 0, 1).await;
    let owner = owner.succeed_with(ms(100)).await;
    owner.adds_up(BRIEF, 0, 1).await;
    forgotten_dead_letters_are_counted(owner).await;
}

/// The last part: of a namespace whose topics are forgotten, and that is deleted.
async fn forgotten_dead_letters_are_counted(mut owner: Owner) {
    let begun = Instant::now();
    // There is one item in `other`, and a dead letter of `t`, which memory forgets.
    while owner
        .topics(NAMESPACE)
        .await
        .iter()
        .any(|topic| &*topic.name.topic == "t" && topic.counted.is_some())
    {
        assert!(begun.elapsed() < TIMEOUT, "the topic is not forgotten");
        sleep(ms(20)).await;
    }
    owner.operate(OperationKind::DeleteDead, "").await;
    owner.adds_up(NAMESPACE, 3, 9).await;
    let owner = owner.succeed().await;
    owner.adds_up(NAMESPACE, 3, 9).await;
    // Of a namespace that is deleted nothing is counted any more.
    assert!(!owner.engine.forget_counts(BRIEF.into()).await.unwrap().is_empty());
    owner.adds_up(BRIEF, 0, 0).await;
    owner.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_in_is_there_or_left_on_sqlite() {
    every_way_out(Place::Sqlite(Folder::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_in_is_there_or_left_on_mariadb() {
    every_way_out(Place::Server(servers::shared(Kind::MariaDb).await.fresh_url().await)).await;
}
