//! PutTopic, DeleteTopic, GetNamespace, ListNamespaces, PutNamespace and DeleteNamespace

use forebay_proto::v1::{
    AckRequest, DeleteNamespaceRequest, DeleteNamespaceResponse, DeleteTopicRequest, DeleteTopicResponse,
    DequeueRequest, DequeuedItem, EnqueueItem, GetItemRequest, GetNamespaceRequest, GetTopicRequest, Item,
    ListNamespacesRequest, ListOperationsRequest, Nack, NackRequest, Namespace, NamespaceSettings, Operation,
    OperationKind, PauseTopicRequest, PutNamespaceRequest, PutTopicRequest, PutTopicResponse, Side,
    TopicDemand, TopicSettings, admin_service_client::AdminServiceClient, topic_demand::Selector,
};
use tonic::{Code, Status, transport::Channel};

use super::{NAMESPACE, RefusalDetails, Wire, item, seconds};

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

fn put(topic: &str, version: u64, settings: TopicSettings) -> PutTopicRequest {
    let (namespace, topic) = (NAMESPACE.to_owned(), topic.to_owned());
    PutTopicRequest { namespace, topic, settings: Some(settings), version, ..Default::default() }
}

fn put_namespace(version: u64, settings: NamespaceSettings) -> PutNamespaceRequest {
    let namespace = NAMESPACE.to_owned();
    PutNamespaceRequest { namespace, settings: Some(settings), version, ..Default::default() }
}

fn retry(span: i64) -> TopicSettings {
    TopicSettings { retry_delay: Some(seconds(span)), ..Default::default() }
}

async fn set(wire: &Wire, request: PutTopicRequest) -> Result<PutTopicResponse, Status> {
    Ok(admin(wire).put_topic(request).await?.into_inner())
}

async fn take(wire: &Wire, topic: &str) -> DequeuedItem {
    let demands = vec![TopicDemand { selector: Some(Selector::Topic(topic.to_owned())), max_items: 1 }];
    let request = DequeueRequest {
        namespace: NAMESPACE.into(),
        demands,
        wait: Some(seconds(15)),
        ..Default::default()
    };
    wire.client().dequeue(request).await.unwrap().into_inner().items.remove(0)
}

async fn nack(wire: &Wire, nack: Nack) {
    let request = NackRequest { namespace: NAMESPACE.into(), nacks: vec![nack] };
    let results = wire.client().nack(request).await.unwrap().into_inner().results;
    assert!(results[0].error.is_none(), "{results:?}");
}

async fn look(wire: &Wire, item_id: &str) -> Item {
    let request =
        GetItemRequest { namespace: NAMESPACE.into(), item_id: item_id.into(), ..Default::default() };
    admin(wire).get_item(request).await.unwrap().into_inner().item.unwrap()
}

/// Seconds between two times.
fn between(from: Option<prost_types::Timestamp>, to: Option<prost_types::Timestamp>) -> i64 {
    let micros = |time: Option<prost_types::Timestamp>| {
        let time = time.unwrap();
        time.seconds * 1_000_000 + i64::from(time.nanos) / 1_000
    };
    (micros(to) - micros(from) + 500_000).div_euclid(1_000_000)
}

async fn namespace(wire: &Wire, name: &str) -> Result<Namespace, Status> {
    let request = GetNamespaceRequest { namespace: name.into() };
    Ok(admin(wire).get_namespace(request).await?.into_inner().namespace.unwrap())
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(set(&wire, request).await);
    let with = |settings| put("t", 0, settings);
    refused(PutTopicRequest { namespace: String::new(), ..with(retry(1)) }).await.invalid("namespace");
    refused(PutTopicRequest { topic: String::new(), ..with(retry(1)) }).await.invalid("topic");
    refused(with(retry(-1))).await.invalid("settings.retry_delay");
    let lease = TopicSettings { default_lease: Some(seconds(0)), ..Default::default() };
    refused(with(lease)).await.invalid("settings.default_lease");
    let attempts = TopicSettings { default_max_attempts: 1_001, ..Default::default() };
    refused(with(attempts)).await.invalid("settings.default_max_attempts");
    let window = NamespaceSettings { dedupe_window: Some(seconds(601)), ..Default::default() };
    let answer = admin(&wire).put_namespace(put_namespace(0, window)).await;
    RefusalDetails::call(answer).invalid("settings.dedupe_window");
}

/// Of two who have read the same version one wins, and the other one hears of it. A repeated call does no
/// harm.
#[tokio::test]
async fn settings_have_a_version() {
    let wire = Wire::start().await;
    let tried = set(&wire, PutTopicRequest { dry_run: true, ..put("t", 0, retry(5)) }).await.unwrap();
    assert_eq!((tried.version, tried.settings), (0, Some(retry(5))));
    let first = set(&wire, put("t", 0, retry(5))).await.unwrap();
    assert!(first.version > 0, "what was only tried has changed nothing");
    let refused = RefusalDetails::call(set(&wire, put("t", 0, retry(6))).await);
    refused.is(Code::Aborted, "VERSION_MISMATCH", Some("version"));
    assert_eq!(set(&wire, put("t", 0, retry(5))).await.unwrap(), first, "all is so already");
    let pause = PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "t".into(),
        sides: vec![Side::Enqueue.into()],
        ..Default::default()
    };
    admin(&wire).pause_topic(pause).await.unwrap();
    let second = set(&wire, put("t", first.version, retry(6))).await.unwrap();
    assert!(second.version > first.version, "a pause changes no settings");
    let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: "t".into() };
    let shown = admin(&wire).get_topic(request).await.unwrap().into_inner();
    let topic = shown.topic.unwrap();
    assert_eq!((topic.settings, topic.settings_version), (Some(retry(6)), second.version));
    let effective = TopicSettings {
        default_lease: Some(seconds(30)),
        default_max_attempts: 16,
        retry_delay: Some(seconds(6)),
        dead_letter_retention: Some(seconds(14 * 86_400)),
        weight: 1,
    };
    assert_eq!(shown.effective_settings, Some(effective));
    let removed = set(&wire, put("t", second.version, TopicSettings::default())).await.unwrap();
    assert_eq!(removed.version, 0);
    assert!(set(&wire, put("t", 0, retry(1))).await.unwrap().version > second.version);
}

/// The topic's settings go first, then those of its namespace. What a caller names goes before both.
#[tokio::test]
async fn settings_count_for_items() {
    let wire = Wire::start().await;
    let day = |days: i64| Some(seconds(days * 86_400));
    let of_namespace = NamespaceSettings {
        default_lease: Some(seconds(100)),
        default_max_attempts: 2,
        dead_letter_retention: day(3),
        ..Default::default()
    };
    let before = wire.stored(vec![item("t")]).await.remove(0);
    admin(&wire).put_namespace(put_namespace(0, of_namespace)).await.unwrap();
    let settings =
        TopicSettings { default_lease: Some(seconds(200)), retry_delay: Some(seconds(50)), ..retry(0) };
    set(&wire, put("t", 0, settings)).await.unwrap();
    let named = EnqueueItem { lease_duration: Some(seconds(7)), max_attempts: 1, priority: 2, ..item("t") };
    let after = EnqueueItem { priority: 1, ..item("t") };
    let ids = wire.stored(vec![after, named, item("u")]).await;
    assert_eq!(look(&wire, &before).await.max_attempts, 16, "what is there keeps its own");
    let attempts = [look(&wire, &ids[0]).await, look(&wire, &ids[1]).await].map(|item| item.max_attempts);
    assert_eq!(attempts, [2, 1]);

    let mut leases = Vec::new();
    for (topic, id) in [("t", &before), ("t", &ids[0]), ("t", &ids[1]), ("u", &ids[2])] {
        let got = take(&wire, topic).await;
        assert_eq!(got.item_id, *id);
        let lease = look(&wire, id).await.lease.unwrap();
        leases.push(between(lease.leased_at, lease.ends_at));
        if *id == ids[0] {
            nack(&wire, Nack { receipt: got.receipt, ..Default::default() }).await;
        } else if *id == ids[1] {
            nack(&wire, Nack { receipt: got.receipt, reason: "no".into(), ..Default::default() }).await;
        } else if *id == before {
            let at_once = Some(seconds(0));
            nack(&wire, Nack { receipt: got.receipt, delay: at_once, ..Default::default() }).await;
            let again = take(&wire, topic).await;
            assert_eq!(again.item_id, before, "the nack has named a delay");
            let acks = vec![forebay_proto::v1::Ack { receipt: again.receipt }];
            wire.client().ack(AckRequest { namespace: NAMESPACE.into(), acks }).await.unwrap();
        }
    }
    assert_eq!(leases, [30, 200, 7, 100]);
    let waits = look(&wire, &ids[0]).await;
    let failed = waits.last_failures[0].ended_at;
    assert_eq!((waits.failures, between(failed, waits.ready_at)), (1, 50));
    let death = look(&wire, &ids[1]).await.death.unwrap();
    assert_eq!(between(death.died_at, death.kept_until), 3 * 86_400);
}

/// Settings of all topics that begin alike stand between a topic's own and its namespace's.
#[tokio::test]
async fn settings_of_a_pattern_count_for_the_topics_that_it_covers() {
    let wire = Wire::start().await;
    for wrong in ["calls*/a", "c*alls", "**", "calls/ *"] {
        RefusalDetails::call(set(&wire, put(wrong, 0, retry(1))).await).invalid("topic");
    }
    let attempts = |number| TopicSettings { default_max_attempts: number, ..Default::default() };
    let of_namespace = NamespaceSettings {
        default_lease: Some(seconds(100)),
        default_max_attempts: 2,
        ..Default::default()
    };
    admin(&wire).put_namespace(put_namespace(0, of_namespace)).await.unwrap();
    let first = set(&wire, put("calls/*", 0, TopicSettings { weight: 7, ..attempts(3) })).await.unwrap();
    set(&wire, put("calls/a*", 0, attempts(4))).await.unwrap();
    set(&wire, put("calls/own", 0, attempts(5))).await.unwrap();
    let ids = wire.stored(["call", "calls/b", "calls/ab", "calls/own"].map(item).to_vec()).await;
    let mut found = Vec::new();
    for id in &ids {
        found.push(look(&wire, id).await.max_attempts);
    }
    assert_eq!(found, [2, 3, 4, 5]);
    let get = async |topic: &str| {
        let request = GetTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
        admin(&wire).get_topic(request).await.map(tonic::Response::into_inner)
    };
    for (topic, attempts, weight) in
        [("call", 2, 1), ("calls/b", 3, 7), ("calls/ab", 4, 7), ("calls/own", 5, 7)]
    {
        let effective = get(topic).await.unwrap().effective_settings.unwrap();
        let shown = (effective.default_max_attempts, effective.weight, effective.default_lease);
        assert_eq!(shown, (attempts, weight, Some(seconds(100))), "{topic}");
    }
    let pattern = get("calls/a*").await.unwrap();
    assert_eq!((pattern.topic.unwrap().settings, pattern.backlog), (Some(attempts(4)), None));
    assert_eq!(pattern.effective_settings.unwrap().weight, 7, "from the shorter one");

    // A pattern is no topic.
    let pause = PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "calls/*".into(),
        sides: vec![Side::Enqueue.into()],
        ..Default::default()
    };
    RefusalDetails::call(admin(&wire).pause_topic(pause).await).invalid("topic");
    let results = wire.enqueue(vec![item("calls/*")]).await.unwrap();
    RefusalDetails::member(&results[0].error).invalid("items[0].topic");

    // It goes though its topics have items.
    let delete = |topic: &str| DeleteTopicRequest {
        namespace: NAMESPACE.into(),
        topic: topic.into(),
        ..Default::default()
    };
    admin(&wire).delete_topic(delete("calls/a*")).await.unwrap();
    RefusalDetails::call(get("calls/a*").await).is(Code::NotFound, "TOPIC_NOT_FOUND", None);
    assert_eq!(get("calls/ab").await.unwrap().effective_settings.unwrap().default_max_attempts, 3);
    set(&wire, put("calls/*", first.version, TopicSettings::default())).await.unwrap();
    assert_eq!(get("calls/ab").await.unwrap().effective_settings.unwrap().default_max_attempts, 2);
}

/// The window that is set counts for keys that are remembered already.
#[tokio::test]
async fn a_window_of_a_namespace_counts_for_keys() {
    let wire = Wire::start().await;
    let keyed = || EnqueueItem { dedupe_key: "k".into(), ..item("t") };
    let first = wire.stored(vec![keyed()]).await.remove(0);
    let again = wire.enqueue(vec![keyed()]).await.unwrap().remove(0);
    assert_eq!((again.item_id.as_str(), again.duplicate), (first.as_str(), true));
    let window = NamespaceSettings { dedupe_window: Some(seconds(1)), ..Default::default() };
    admin(&wire).put_namespace(put_namespace(0, window)).await.unwrap();
    let begun = tokio::time::Instant::now();
    loop {
        let again = wire.enqueue(vec![keyed()]).await.unwrap().remove(0);
        if !again.duplicate {
            break;
        }
        assert!(begun.elapsed().as_secs() < 15, "the key is remembered for ten minutes");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_topic_with_items_is_not_deleted() {
    let wire = Wire::start().await;
    let delete = |dry_run| DeleteTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "t".into(),
        dry_run,
        ..Default::default()
    };
    set(&wire, put("t", 0, retry(5))).await.unwrap();
    wire.stored(vec![item("t")]).await;
    let refused = RefusalDetails::call(admin(&wire).delete_topic(delete(false)).await);
    refused.is(Code::FailedPrecondition, "NOT_EMPTY", None);
    let got = take(&wire, "t").await;
    nack(&wire, Nack { receipt: got.receipt, dead_letter: true, ..Default::default() }).await;
    let status = admin(&wire).delete_topic(delete(false)).await.unwrap_err();
    assert!(status.message().contains("1 dead letters"), "{status}");
    set(&wire, put("u", 0, retry(5))).await.unwrap();
    let empty = |dry_run| DeleteTopicRequest { topic: "u".into(), ..delete(dry_run) };
    for dry_run in [true, false] {
        let topic = admin(&wire).delete_topic(empty(dry_run)).await.unwrap().into_inner().topic.unwrap();
        assert_eq!(topic.settings, Some(retry(5)));
    }
    // Whoever has lost the answer asks again.
    for dry_run in [false, true] {
        let again = admin(&wire).delete_topic(empty(dry_run)).await.unwrap().into_inner();
        assert_eq!(again, DeleteTopicResponse::default(), "there is nothing of it");
    }
}

#[tokio::test]
async fn namespaces_are_summed_up_listed_and_deleted() {
    let wire = Wire::start().await;
    RefusalDetails::call(namespace(&wire, "none").await).is(Code::NotFound, "NAMESPACE_NOT_FOUND", None);
    wire.stored(vec![item("a"), item("b"), item("b")]).await;
    take(&wire, "b").await;
    let settings = NamespaceSettings { retry_delay: Some(seconds(9)), ..Default::default() };
    for name in ["alpha", NAMESPACE, "omega"] {
        let request = PutNamespaceRequest { namespace: name.into(), ..put_namespace(0, settings) };
        admin(&wire).put_namespace(request).await.unwrap();
    }
    let own = namespace(&wire, NAMESPACE).await.unwrap();
    assert_eq!((own.topic_count, own.ready_count, own.leased_count), (2, 2, 1));
    assert_eq!((own.settings, own.topics_cut), (Some(settings), false));
    assert!(own.oldest_ready_at.is_some() && own.settings_version > 0);

    let (mut seen, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListNamespacesRequest { page_size: 1, page_token };
        let page = admin(&wire).list_namespaces(request).await.unwrap().into_inner();
        assert!(page.namespaces.len() <= 1 && page.incomplete_shards.is_empty());
        seen.extend(page.namespaces);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let mut expected = vec!["alpha", NAMESPACE, "omega"];
    expected.sort_unstable();
    assert_eq!(seen.iter().map(|it| it.namespace.as_str()).collect::<Vec<_>>(), expected);
    let listed = seen.iter().find(|it| it.namespace == NAMESPACE).unwrap();
    assert_eq!((listed.ready_count, listed.topic_count, listed.settings), (2, 2, Some(settings)));
    let foreign = ListNamespacesRequest { page_size: 1, page_token: "x".into() };
    RefusalDetails::call(admin(&wire).list_namespaces(foreign).await).invalid("page_token");

    let delete = |name: &str| DeleteNamespaceRequest { namespace: name.into(), ..Default::default() };
    let refused = RefusalDetails::call(admin(&wire).delete_namespace(delete(NAMESPACE)).await);
    refused.is(Code::FailedPrecondition, "NOT_EMPTY", None);
    let topic = PutTopicRequest { namespace: "alpha".into(), ..put("t", 0, retry(5)) };
    set(&wire, topic.clone()).await.unwrap();
    let gone = admin(&wire).delete_namespace(delete("alpha")).await.unwrap().into_inner().namespace.unwrap();
    assert_eq!(gone.settings, Some(settings));
    let again = admin(&wire).delete_namespace(delete("alpha")).await.unwrap().into_inner();
    assert_eq!(again, DeleteNamespaceResponse::default(), "whoever has lost the answer asks again");
    RefusalDetails::call(namespace(&wire, "alpha").await).is(Code::NotFound, "NAMESPACE_NOT_FOUND", None);
    assert!(set(&wire, topic).await.unwrap().version > 0, "those of its topic were removed, too");
}

/// Items of all states go by operations, which a repeated call does not begin anew.
#[tokio::test]
async fn a_topic_and_a_namespace_go_with_their_items() {
    let wire = Wire::start().await;
    let until_gone = async |topic: &str| {
        let begun = tokio::time::Instant::now();
        let request = || GetTopicRequest { namespace: NAMESPACE.into(), topic: topic.into() };
        loop {
            let found = admin(&wire).get_topic(request()).await;
            if found.is_err() {
                return RefusalDetails::call(found).is(Code::NotFound, "TOPIC_NOT_FOUND", None);
            }
            let it = found.unwrap().into_inner().topic.unwrap();
            if it.ready_count + it.leased_count + it.scheduled_count + it.dead_count == 0 {
                return;
            }
            assert!(begun.elapsed().as_secs() < 30, "{it:?}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    let delete = |topic: &str, dry_run| DeleteTopicRequest {
        namespace: NAMESPACE.into(),
        topic: topic.into(),
        force: true,
        dry_run,
        ..Default::default()
    };
    set(&wire, put("t", 0, retry(5))).await.unwrap();
    wire.stored(vec![item("t"), item("t"), item("t"), item("u"), item("v")]).await;
    take(&wire, "t").await;
    let dead = take(&wire, "t").await;
    nack(&wire, Nack { receipt: dead.receipt, dead_letter: true, ..Default::default() }).await;
    let tried = admin(&wire).delete_topic(delete("t", true)).await.unwrap().into_inner();
    assert_eq!((tried.topic.unwrap().settings, &*tried.operation_id), (Some(retry(5)), ""));
    let gone = admin(&wire).delete_topic(delete("t", false)).await.unwrap().into_inner();
    assert_eq!((gone.topic.unwrap().ready_count, gone.operation_id.is_empty()), (1, false));
    until_gone("t").await;
    assert_eq!(namespace(&wire, NAMESPACE).await.unwrap().ready_count, 2, "other topics stay");

    let delete = DeleteNamespaceRequest {
        namespace: NAMESPACE.into(),
        force: true,
        request_id: "once".into(),
        ..Default::default()
    };
    let first = admin(&wire).delete_namespace(delete.clone()).await.unwrap().into_inner();
    assert_eq!(first.operation_ids.len(), 2);
    until_gone("u").await;
    until_gone("v").await;
    let operations = all_ended(&wire).await;
    assert_eq!(operations.len(), 3, "{operations:?}");

    // A repeated call that finds an item answers the operation that is over.
    wire.stored(vec![item("u")]).await;
    let again = admin(&wire).delete_namespace(delete.clone()).await.unwrap().into_inner().operation_ids;
    assert!(again.len() == 1 && first.operation_ids.contains(&again[0]), "{again:?} {first:?}");
    assert_eq!(all_ended(&wire).await.len(), 3, "it begins no other one");
    assert_eq!(namespace(&wire, NAMESPACE).await.unwrap().ready_count, 1);
    let other = DeleteNamespaceRequest { request_id: "other".into(), ..delete };
    let other = admin(&wire).delete_namespace(other).await.unwrap().into_inner().operation_ids;
    assert!(other.len() == 1 && !first.operation_ids.contains(&other[0]), "{other:?} {first:?}");
    until_gone("u").await;
}

/// The operations that remove items, once all of them are over.
async fn all_ended(wire: &Wire) -> Vec<Operation> {
    let begun = tokio::time::Instant::now();
    loop {
        let request = ListOperationsRequest { namespace: NAMESPACE.into(), ..Default::default() };
        let mut found = admin(wire).list_operations(request).await.unwrap().into_inner().operations;
        found.retain(|it| it.kind() == OperationKind::Cancel);
        if found.iter().all(|it| it.ended_at.is_some()) {
            return found;
        }
        assert!(begun.elapsed().as_secs() < 30, "{found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
