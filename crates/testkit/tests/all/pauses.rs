//! Items of a paused topic are not handed out, or not taken in, until the pause ends.

use std::time::Duration;

use forebay_engine::{
    ActiveTopicsCall, DeliveredItem, DequeueCall, Engine, EnqueueCall, EnqueueOutcome, NewItem, Settings,
};
use forebay_testkit::{FakeShards, NAMESPACE, dequeue, fake::Process, item};
use forebay_types::{
    Clock, Pause, Policy, PolicyChanges, PolicyRow, Reason, Refusal, Side, Timestamp, TopicName,
};
use tokio::{task::JoinHandle, time::sleep};

const SECOND: Duration = Duration::from_secs(1);

/// An engine over two shards, and what tells it of policies.
struct Bench {
    shards: FakeShards,
    engine: Engine,
    version: u64,
}

impl Bench {
    async fn new() -> Self {
        let shards = FakeShards::new(2).await;
        let engine = shards.start(Settings::default()).await;
        Self { shards, engine, version: 0 }
    }

    fn now(&self) -> Timestamp {
        self.shards.clock(Duration::ZERO).wall()
    }

    fn put(&mut self, name: TopicName, policy: Policy) {
        self.version += 1;
        let rows = vec![PolicyRow { name, version: self.version, policy }];
        self.engine.set_policies(PolicyChanges { rows, ..PolicyChanges::default() });
    }

    /// Pauses one side of a topic. An empty topic is the whole namespace.
    fn pause(&mut self, topic: &str, side: Side, span: Option<Duration>) {
        let until = span.map(|span| self.now().plus(span));
        let pause = Pause { by: "ops".into(), since: self.now(), until, note: "a migration".into() };
        let mut policy = Policy::default();
        *policy.pause_mut(side) = Some(pause);
        self.put(TopicName::new(NAMESPACE, topic), policy);
    }

    fn resume(&mut self, topic: &str) {
        self.put(TopicName::new(NAMESPACE, topic), Policy::default());
    }

    async fn enqueue(
        &self,
        items: Vec<NewItem>,
        request_id: Option<&str>,
    ) -> Vec<Result<EnqueueOutcome, Refusal>> {
        let request_id = request_id.map(Into::into);
        let call = EnqueueCall { namespace: NAMESPACE.into(), items, request_id, ..EnqueueCall::default() };
        self.engine.enqueue(call).await.expect("is taken")
    }

    async fn store(&self, topic: &str) {
        assert!(self.enqueue(vec![item(topic)], None).await[0].is_ok());
    }

    async fn take(&self, topics: &[&str]) -> Vec<String> {
        names(&self.engine.dequeue(dequeue(topics, 10)).await.expect("is answered"))
    }

    /// A long poll, and when it was answered.
    fn poll(&self, topics: &[&str]) -> JoinHandle<(Vec<String>, Timestamp)> {
        let (engine, clock) = (self.engine.clone(), self.shards.clock(Duration::ZERO));
        let call = DequeueCall { wait: 20 * SECOND, ..dequeue(topics, 10) };
        tokio::spawn(async move {
            let items = engine.dequeue(call).await.expect("is answered");
            (names(&items), clock.wall())
        })
    }

    async fn active(&self) -> Vec<String> {
        let call = ActiveTopicsCall {
            namespace: NAMESPACE.into(),
            limit: 100,
            after: None,
            prefix: String::new(),
            named: Vec::new(),
        };
        let page = self.engine.active_topics(call).await.expect("is answered");
        page.topics.iter().map(|topic| topic.position.topic.to_string()).collect()
    }
}

fn names(items: &[DeliveredItem]) -> Vec<String> {
    items.iter().map(|item| item.topic.to_string()).collect()
}

fn refused(results: &[Result<EnqueueOutcome, Refusal>]) -> Vec<Option<Reason>> {
    results.iter().map(|result| result.as_ref().err().map(|refusal| refusal.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_paused_topic_hands_out_nothing_and_others_do() {
    let mut bench = Bench::new().await;
    bench.store("before").await;
    bench.store("other").await;
    bench.pause("before", Side::Dequeue, None);
    bench.store("before").await;
    assert_eq!(bench.take(&["before"]).await, [""; 0]);
    assert_eq!(bench.take(&["before", "other"]).await, ["other"]);
    bench.resume("before");
    assert_eq!(bench.take(&["before"]).await, ["before", "before"]);
}

#[tokio::test(start_paused = true)]
async fn leases_in_progress_go_on_in_a_paused_topic() {
    let mut bench = Bench::new().await;
    bench.store("t").await;
    let held = bench.engine.dequeue(dequeue(&["t"], 1)).await.unwrap();
    bench.pause("t", Side::Dequeue, None);
    let receipt = held[0].receipt.unwrap();
    assert!(bench.engine.ack(NAMESPACE.into(), vec![receipt], None).await.unwrap()[0].is_ok());
}

/// By a resume, and by the end of the pause: at that time, and not later.
#[tokio::test(start_paused = true)]
async fn polls_that_wait_are_served_when_the_pause_is_over() {
    let mut bench = Bench::new().await;
    bench.store("t").await;
    bench.pause("t", Side::Dequeue, None);
    let poll = bench.poll(&["t"]);
    sleep(5 * SECOND).await;
    assert!(!poll.is_finished());
    let resumed = bench.now();
    bench.resume("t");
    let (items, at) = poll.await.unwrap();
    assert_eq!(items, ["t"]);
    assert!(at.since(resumed) < SECOND / 10, "{:?}", at.since(resumed));

    bench.store("u").await;
    let paused = bench.now();
    bench.pause("u", Side::Dequeue, Some(7 * SECOND));
    let (items, at) = bench.poll(&["u"]).await.unwrap();
    assert_eq!(items, ["u"]);
    let waited = at.since(paused);
    assert!((7 * SECOND..7 * SECOND + SECOND / 10).contains(&waited), "{waited:?}");
}

/// New items go to waiting polls in the batch that stores them. Not so those of a paused topic.
#[tokio::test(start_paused = true)]
async fn new_items_are_not_handed_to_polls_of_a_paused_topic() {
    let mut bench = Bench::new().await;
    bench.pause("t", Side::Dequeue, None);
    let poll = bench.poll(&["t"]);
    sleep(SECOND).await;
    bench.store("t").await;
    sleep(SECOND).await;
    assert!(!poll.is_finished());
    bench.resume("t");
    assert_eq!(poll.await.unwrap().0, ["t"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_paused_with_all_of_its_topics() {
    let mut bench = Bench::new().await;
    let topics: Vec<String> = (0..3_000).map(|number| format!("t{number:04}")).collect();
    for topics in topics.chunks(500) {
        let items = topics.iter().map(|topic| item(topic)).collect();
        assert!(bench.enqueue(items, None).await.iter().all(Result::is_ok));
    }
    assert_eq!(bench.active().await.len(), 100);
    bench.pause("", Side::Dequeue, None);
    assert_eq!(bench.active().await, [""; 0]);
    let polls: Vec<_> = ["t0000", "t1500", "t2999"].map(|topic| bench.poll(&[topic])).into();
    sleep(SECOND).await;
    assert!(polls.iter().all(|poll| !poll.is_finished()));
    // A resume of one topic does not end the pause of all.
    bench.pause("t0000", Side::Dequeue, None);
    bench.resume("t0000");
    sleep(SECOND).await;
    assert!(polls.iter().all(|poll| !poll.is_finished()));
    // Items that come during the pause, while somebody asks for active topics, are there when it ends.
    let call = vec![NewItem { priority: -1, ..item("t2000") }];
    assert!(bench.enqueue(call, None).await.iter().all(Result::is_ok));
    assert_eq!(bench.active().await, [""; 0]);
    bench.resume("");
    assert_eq!(bench.active().await[0], "t2000");
    for poll in polls {
        assert_eq!(poll.await.unwrap().0.len(), 1);
    }
    assert_eq!(bench.active().await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_paused_topic_is_not_active() {
    let mut bench = Bench::new().await;
    bench.store("a").await;
    bench.store("b").await;
    assert_eq!(bench.active().await, ["a", "b"]);
    bench.pause("a", Side::Dequeue, Some(5 * SECOND));
    assert_eq!(bench.active().await, ["b"]);
    bench.store("a").await;
    assert_eq!(bench.active().await, ["b"]);
    bench.pause("b", Side::Enqueue, None);
    assert_eq!(bench.active().await, ["b"], "it is handed out");
    sleep(6 * SECOND).await;
    assert_eq!(bench.active().await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn members_for_a_paused_topic_are_refused_and_others_are_stored() {
    let mut bench = Bench::new().await;
    bench.store("t").await;
    bench.pause("t", Side::Enqueue, Some(10 * SECOND));
    let results = bench.enqueue(vec![item("u"), item("t"), item("u")], None).await;
    assert_eq!(refused(&results), [None, Some(Reason::TopicPaused), None]);
    let message = &results[1].as_ref().unwrap_err().message;
    assert!(message.contains("topic t") && message.contains("until 20"), "{message}");
    assert!(message.ends_with(": a migration"), "{message}");
    assert_eq!(bench.take(&["t"]).await, ["t"], "what is there is handed out");
    sleep(11 * SECOND).await;
    bench.store("t").await;
    bench.pause("", Side::Enqueue, None);
    assert_eq!(refused(&bench.enqueue(vec![item("u")], None).await), [Some(Reason::TopicPaused)]);
}

/// A key that is known is answered as before. One that is not known is not remembered by a refusal.
#[tokio::test(start_paused = true)]
async fn keys_are_answered_while_their_topic_is_paused() {
    let mut bench = Bench::new().await;
    let keyed = |key: &str| NewItem { dedupe_key: Some(key.into()), ..item("t") };
    let first = bench.enqueue(vec![keyed("old")], None).await[0].clone().unwrap();
    bench.pause("t", Side::Enqueue, None);
    let results = bench.enqueue(vec![keyed("old"), keyed("new")], None).await;
    let again = results[0].clone().unwrap();
    assert_eq!((again.id, again.duplicate), (first.id, true));
    assert_eq!(refused(&results), [None, Some(Reason::TopicPaused)]);
    bench.resume("t");
    let stored = bench.enqueue(vec![keyed("new")], None).await[0].clone().unwrap();
    assert!(!stored.duplicate);
}

/// It is stored whole, or not at all; and may be repeated when the pause is over.
#[tokio::test(start_paused = true)]
async fn a_call_with_a_request_id_is_refused_whole() {
    let mut bench = Bench::new().await;
    let items = || vec![item("u"), item("t")];
    let first = bench.enqueue(items(), Some("one")).await;
    assert_eq!(refused(&first), [None, None]);
    bench.pause("t", Side::Enqueue, None);
    let again = bench.enqueue(items(), Some("one")).await;
    let ids = |results: &[Result<EnqueueOutcome, Refusal>]| -> Vec<_> {
        results.iter().map(|result| result.as_ref().unwrap().id).collect()
    };
    assert_eq!(ids(&again), ids(&first), "it was stored before the pause");
    let paused = Some(Reason::TopicPaused);
    assert_eq!(refused(&bench.enqueue(items(), Some("two")).await), [paused, paused]);
    bench.resume("t");
    let two = bench.enqueue(items(), Some("two")).await;
    assert_eq!(refused(&two), [None, None]);
    assert_eq!(bench.take(&["u"]).await.len(), 2);
}

/// Policies are of the node, not of its shards.
#[tokio::test(start_paused = true)]
async fn a_shard_that_is_taken_over_later_hands_out_nothing_of_a_paused_topic() {
    let mut bench = Bench::new().await;
    bench.store("t").await;
    bench.engine.stop().await;
    let clock = std::sync::Arc::new(bench.shards.clock(Duration::ZERO));
    let settings = Settings::default();
    bench.engine = bench.shards.start_as(&Process::new(2), "here:2", settings, clock);
    bench.pause("t", Side::Dequeue, None);
    bench.engine.ready().await;
    let poll = bench.poll(&["t"]);
    sleep(3 * SECOND).await;
    assert!(!poll.is_finished());
    assert_eq!((bench.take(&["t"]).await, bench.active().await), (vec![], vec![]));
    bench.resume("t");
    assert_eq!(poll.await.unwrap().0, ["t"]);
}

/// A policy that is not among all policies is gone.
#[tokio::test(start_paused = true)]
async fn policies_that_are_read_whole_replace_all_others() {
    let mut bench = Bench::new().await;
    bench.store("t").await;
    bench.pause("t", Side::Dequeue, None);
    bench.pause("u", Side::Dequeue, None);
    let status = bench.engine.status().await.unwrap();
    assert_eq!((status.paused_dequeue, status.paused_enqueue), (2, 0));
    bench.engine.set_policies(PolicyChanges { whole: true, ..PolicyChanges::default() });
    assert_eq!(bench.take(&["t"]).await, ["t"]);
    assert_eq!(bench.engine.status().await.unwrap().paused_dequeue, 0);
}
