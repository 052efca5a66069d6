//! StartOperation and its like: changes of many items of a topic.

use std::time::Duration;

use forebay_proto::v1::{
    CancelOperationRequest, DequeuedItem, EnqueueItem, GetOperationRequest, ItemState, ListItemsRequest,
    ListOperationsRequest, Nack, Operation, OperationKind, OperationState, OperationUpdate,
    SetOperationRateRequest, StartOperationRequest, StartOperationResponse,
    admin_service_client::AdminServiceClient, enqueue_item::Schedule, operation_update,
};
use forebay_types::{Clock as _, SystemClock};
use tokio::time::Instant;
use tonic::{Code, Status, transport::Channel};

use super::{NAMESPACE, RefusalDetails, Wire, item, micros, seconds};

/// An operation has ended within this time, on a machine that does much else.
const END_TIMEOUT: Duration = Duration::from_secs(30);

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

fn request(kind: OperationKind, topic: &str) -> StartOperationRequest {
    let (namespace, topic) = (NAMESPACE.to_owned(), topic.to_owned());
    StartOperationRequest { namespace, kind: kind.into(), topic, ..Default::default() }
}

async fn start(wire: &Wire, request: StartOperationRequest) -> Result<StartOperationResponse, Status> {
    admin(wire).start_operation(request).await.map(tonic::Response::into_inner)
}

async fn get(wire: &Wire, id: &str, version: Option<u64>) -> Result<Operation, Status> {
    let request = GetOperationRequest {
        namespace: NAMESPACE.to_owned(),
        operation_id: id.to_owned(),
        wait: version.map(|_| seconds(5)),
        version: version.unwrap_or(0),
    };
    Ok(admin(wire).get_operation(request).await?.into_inner().operation.unwrap())
}

/// Starts an operation, and waits for its end. Returns matched, changed, skipped, failed.
async fn run(wire: &Wire, request: StartOperationRequest) -> [u64; 4] {
    let started = start(wire, request).await.unwrap();
    assert_eq!(started.incomplete_shards, [] as [u32; 0]);
    let ended = ended(wire, started.operation.unwrap()).await;
    assert_eq!(ended.state(), OperationState::Succeeded);
    assert!(ended.ended_at.is_some() && ended.shards.iter().all(|shard| shard.begun && shard.ended));
    figures(&ended)
}

async fn ended(wire: &Wire, mut operation: Operation) -> Operation {
    let begun = Instant::now();
    use OperationState::{Cancelled, Failed, Succeeded};
    while !matches!(operation.state(), Succeeded | Cancelled | Failed) {
        assert!(begun.elapsed() < END_TIMEOUT, "{operation:?}");
        operation = get(wire, &operation.id, Some(operation.version)).await.unwrap();
    }
    operation
}

fn figures(operation: &Operation) -> [u64; 4] {
    let figures = operation.figures.unwrap();
    [figures.matched, figures.changed, figures.skipped, figures.failed]
}

/// An item that expires in an hour, and is a dead letter now.
async fn dead(wire: &Wire, topic: &str, count: usize, reason: &str) {
    let items = vec![EnqueueItem { ttl: Some(seconds(3_600)), max_attempts: 1, ..item(topic) }; count];
    wire.stored(items).await;
    let mut left = count;
    while left > 0 {
        for taken in wire.take(topic, 100).await {
            let nack = Nack { receipt: taken.receipt, reason: reason.to_owned(), ..Default::default() };
            assert_eq!(wire.nack(nack).await, None);
            left -= 1;
        }
    }
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let purge = || request(OperationKind::Purge, "t");
    let refused = async |request| RefusalDetails::call(start(&wire, request).await);
    refused(StartOperationRequest { namespace: String::new(), ..purge() }).await.invalid("namespace");
    refused(StartOperationRequest { kind: 0, ..purge() }).await.invalid("kind");
    refused(StartOperationRequest { topic: "a b".into(), ..purge() }).await.invalid("topic");
    refused(StartOperationRequest { filter: "size > 1".into(), ..purge() }).await.invalid("filter");
    refused(StartOperationRequest { filter: "reason = x".into(), ..purge() }).await.invalid("filter");
    refused(StartOperationRequest { to_topic: "t".into(), ..purge() }).await.invalid("to_topic");
    refused(StartOperationRequest { ttl: Some(seconds(1)), ..purge() }).await.invalid("ttl");
    let redrive = || request(OperationKind::Redrive, "t");
    refused(StartOperationRequest { leased: true, ..redrive() }).await.invalid("leased");
    let cancel = || request(OperationKind::Cancel, "t");
    refused(StartOperationRequest { leased: true, ..cancel() }).await.invalid("leased");
    let update =
        |update| StartOperationRequest { update: Some(update), ..request(OperationKind::Update, "t") };
    let priority = || OperationUpdate { priority: Some(1), ..Default::default() };
    refused(StartOperationRequest { update: Some(priority()), ..cancel() }).await.invalid("update");
    let most = |most| StartOperationRequest { max_redrives: Some(most), ..redrive() };
    refused(most(0)).await.invalid("max_redrives");
    refused(most(65_536)).await.invalid("max_redrives");
    refused(StartOperationRequest { max_redrives: Some(1), ..cancel() }).await.invalid("max_redrives");
    let resets = request(OperationKind::ResetLeases, "t");
    refused(StartOperationRequest { filter: "redrives > 1".into(), ..resets }).await.invalid("filter");
    refused(request(OperationKind::Update, "t")).await.invalid("update.priority");
    refused(update(OperationUpdate::default())).await.invalid("update.priority");
    let long = OperationUpdate { metadata: Some(vec![0; 1_025].into()), ..priority() };
    let too_large = RefusalDetails::call(start(&wire, update(long)).await);
    too_large.is(Code::InvalidArgument, "TOO_LARGE", Some("update.metadata"));
    refused(update(OperationUpdate { ttl: Some(seconds(0)), ..priority() })).await.invalid("update.ttl");
    refused(update(OperationUpdate { metadata_bytes: Some(1), ..priority() }))
        .await
        .invalid("update.metadata_bytes");
    let filtered = StartOperationRequest { filter: "reason = x".into(), ..update(priority()) };
    refused(filtered).await.invalid("filter");
    refused(StartOperationRequest { ttl: Some(seconds(0)), ..redrive() }).await.invalid("ttl");
    refused(StartOperationRequest { to_topic: "a b".into(), ..redrive() }).await.invalid("to_topic");
    refused(StartOperationRequest { rate_per_second: 1_000_001, ..purge() }).await.invalid("rate_per_second");
    let said = "r".repeat(1_025);
    let long = start(&wire, StartOperationRequest { reason: said, ..purge() }).await.unwrap();
    assert_eq!(long.operation.unwrap().reason, "r".repeat(1_021) + "…");
    refused(StartOperationRequest { request_id: "i".repeat(201), ..purge() }).await.too_large("request_id");
    RefusalDetails::call(get(&wire, "x", None).await).invalid("operation_id");
    let unknown = "0".repeat(32);
    RefusalDetails::call(get(&wire, &unknown, None).await).is(Code::NotFound, "OPERATION_NOT_FOUND", None);
}

#[tokio::test]
async fn a_purge_removes_what_its_filter_names() {
    let wire = Wire::start().await;
    let delay = Some(Schedule::Delay(seconds(3_600)));
    wire.stored(vec![EnqueueItem { priority: -5, ..item("mail") }; 30]).await;
    wire.stored(vec![EnqueueItem { priority: 5, ..item("mail") }; 40]).await;
    wire.stored(vec![EnqueueItem { priority: 5, schedule: delay, ..item("mail") }; 10]).await;
    wire.stored(vec![item("other"); 5]).await;
    let filter = "priority >= 0 AND age < 1h AND attempt = 0".to_owned();
    let purge = StartOperationRequest { filter, ..request(OperationKind::Purge, "mail") };

    let dry = StartOperationRequest { dry_run: true, ..purge.clone() };
    let counted = start(&wire, dry).await.unwrap();
    assert_eq!((counted.exact, counted.operation.unwrap().figures.unwrap().matched), (true, 50));
    assert_eq!(counted.sample_item_ids.len(), 20);
    let few = StartOperationRequest { expect_at_most: Some(49), ..purge.clone() };
    RefusalDetails::call(start(&wire, few).await).is(Code::FailedPrecondition, "EXPECTATION_FAILED", None);

    let some = StartOperationRequest { limit: 8, expect_at_most: Some(50), ..purge.clone() };
    assert_eq!(run(&wire, some).await[1], 8);
    assert_eq!(run(&wire, purge).await, [42, 42, 0, 0]);
    assert_eq!(wire.metric("forebay_purged_total{namespace=\"wire\"}").await, 50.0);
    let rest = wire.take("mail", 100).await;
    assert!(rest.len() == 30 && rest.iter().all(|item| item.priority == -5));
    assert_eq!(wire.take("other", 100).await.len(), 5);
}

#[tokio::test]
async fn a_leased_item_is_purged_only_if_that_is_asked_for() {
    let wire = Wire::start().await;
    wire.stored(vec![item("mail"); 10]).await;
    let leased = wire.take("mail", 4).await;
    let purge = request(OperationKind::Purge, "mail");
    assert_eq!(run(&wire, purge.clone()).await, [10, 6, 4, 0]);
    assert_eq!(wire.ack(&leased[0].receipt).await, None);
    assert_eq!(run(&wire, StartOperationRequest { leased: true, ..purge }).await, [3, 3, 0, 0]);
    RefusalDetails::member(&wire.ack(&leased[1].receipt).await).lost("gone");
}

#[tokio::test]
async fn items_are_cancelled_wherever_they_are() {
    let wire = Wire::start().await;
    dead(&wire, "mail", 2, "timeout").await;
    dead(&wire, "mail", 1, "rejected").await;
    wire.stored(vec![item("mail"); 10]).await;
    let later = Some(Schedule::Delay(seconds(3_600)));
    wire.stored(vec![EnqueueItem { schedule: later, ..item("mail") }; 3]).await;
    wire.stored(vec![item("other"); 2]).await;
    let leased = wire.take("mail", 4).await;
    let cancel = request(OperationKind::Cancel, "mail");
    let counted = start(&wire, StartOperationRequest { dry_run: true, ..cancel.clone() }).await.unwrap();
    assert_eq!((figures(&counted.operation.unwrap())[0], counted.exact), (16, true));
    let rejected = StartOperationRequest { filter: "reason = rejected".into(), ..cancel.clone() };
    assert_eq!(run(&wire, rejected).await, [1, 1, 0, 0], "only dead letters have a reason");
    assert_eq!(run(&wire, cancel.clone()).await, [15, 15, 0, 0]);
    assert_eq!(run(&wire, cancel).await, [0; 4]);
    RefusalDetails::member(&wire.ack(&leased[0].receipt).await).lost("gone");
    assert!(wire.take("mail", 100).await.is_empty() && wire.take("other", 100).await.len() == 2);
    assert_eq!(wire.metric("forebay_cancelled_total{namespace=\"wire\"}").await, 16.0);
    let of_kind = "forebay_operation_items_total{kind=\"cancel\",outcome=\"changed\"}";
    assert_eq!(wire.metric(of_kind).await, 16.0);
}

#[tokio::test]
async fn items_that_wait_get_other_values_once() {
    let wire = Wire::start().await;
    // In several pages, and in the way of those that have moved.
    let items = (0..700).map(|number| EnqueueItem { priority: number % 7, ..item("mail") });
    wire.stored(items.collect()).await;
    let later = Some(Schedule::Delay(seconds(3_600)));
    wire.stored(vec![EnqueueItem { schedule: later, ..item("mail") }; 20]).await;
    let leased = wire.take("mail", 5).await;
    let update = OperationUpdate {
        priority: Some(3),
        schedule: Some(operation_update::Schedule::Delay(seconds(0))),
        metadata: Some("moved".into()),
        ttl: Some(seconds(600)),
        metadata_bytes: None,
    };
    let request = StartOperationRequest {
        update: Some(update),
        rate_per_second: 1_000_000,
        ..request(OperationKind::Update, "mail")
    };
    let filtered = StartOperationRequest { filter: "priority >= 4".into(), ..request.clone() };
    assert_eq!(run(&wire, filtered).await, [300, 300, 0, 0]);
    let started = start(&wire, request.clone()).await.unwrap().operation.unwrap();
    let shown = started.update.unwrap();
    assert_eq!((shown.priority, shown.metadata, shown.metadata_bytes), (Some(3), None, Some(5)));
    assert_eq!(figures(&ended(&wire, get(&wire, &started.id, None).await.unwrap()).await), [720, 715, 5, 0]);
    assert_eq!(wire.metric("forebay_updated_total").await, 1_015.0);
    let first = wire.ack(&leased[0].receipt).await;
    assert_eq!(first, None, "the leased ones are as they were");
    let mut seen = 0;
    while seen < 715 {
        let taken = wire.take("mail", 500).await;
        assert!(!taken.is_empty(), "{seen} of the items are ready");
        let is =
            |item: &DequeuedItem| item.priority == 3 && item.metadata == "moved" && item.expires_at.is_some();
        assert!(taken.iter().all(is), "{taken:?}");
        seen += taken.len();
    }
    assert_eq!(seen, 715);
}

#[tokio::test]
async fn dead_letters_return_or_are_deleted() {
    let wire = Wire::start().await;
    dead(&wire, "mail", 6, "timeout after 5 s").await;
    dead(&wire, "mail", 3, "rejected").await;
    let filter = "reason = \"timeout*\"".to_owned();
    let redrive = StartOperationRequest { filter, ..request(OperationKind::Redrive, "mail") };
    let elsewhere = StartOperationRequest { to_topic: "slow".into(), limit: 2, ..redrive.clone() };
    assert_eq!(run(&wire, elsewhere).await[1], 2);
    assert_eq!(run(&wire, StartOperationRequest { ttl: Some(seconds(60)), ..redrive }).await, [4, 4, 0, 0]);
    assert_eq!(run(&wire, request(OperationKind::DeleteDead, "mail")).await, [3, 3, 0, 0]);
    assert_eq!(wire.metric("forebay_redriven_total{namespace=\"wire\"}").await, 6.0);
    let back = wire.take("mail", 100).await;
    assert!(back.len() == 4 && back.iter().all(|item| (item.attempt, item.failures) == (2, 0)));
    assert!(back.iter().all(|item| item.expires_at.is_some() && item.payload == "payload"));
    let slow = wire.take("slow", 100).await;
    assert!(slow.len() == 2 && slow.iter().all(|item| item.expires_at.is_none()));
    assert_eq!(run(&wire, request(OperationKind::DeleteDead, "mail")).await, [0; 4]);
}

#[tokio::test]
async fn leases_are_released() {
    let wire = Wire::start().await;
    wire.stored(vec![item("mail"); 5]).await;
    let leased = wire.take("mail", 3).await;
    assert_eq!(run(&wire, request(OperationKind::ResetLeases, "mail")).await, [3, 3, 0, 0]);
    RefusalDetails::member(&wire.ack(&leased[0].receipt).await).lost("waiting");
    let again = wire.take("mail", 100).await;
    assert_eq!(again.len(), 5);
    assert_eq!(again.iter().filter(|item| (item.attempt, item.failures) == (2, 0)).count(), 3);
}

#[tokio::test]
async fn an_operation_is_begun_once_slowed_down_and_cancelled() {
    let wire = Wire::start().await;
    wire.stored(vec![item("mail"); 1_000]).await;
    let request_id = "purge-1".to_owned();
    let purge =
        StartOperationRequest { request_id, rate_per_second: 1, ..request(OperationKind::Purge, "mail") };
    let first = start(&wire, purge.clone()).await.unwrap().operation.unwrap();
    let again = start(&wire, purge.clone()).await.unwrap().operation.unwrap();
    assert_eq!((&first.id, first.rate_per_second), (&again.id, 1));
    let other = StartOperationRequest { topic: "other".into(), ..purge.clone() };
    let refused = RefusalDetails::call(start(&wire, other).await);
    refused.is(Code::AlreadyExists, "REQUEST_ID_REUSED", Some("request_id"));

    // The next one of the topic waits.
    let waiting = start(&wire, request(OperationKind::Purge, "mail")).await.unwrap().operation.unwrap();
    let (namespace, operation_id) = (NAMESPACE.to_owned(), first.id.clone());
    let rate = SetOperationRateRequest { rate_per_second: 2, namespace, operation_id };
    let slow = admin(&wire).set_operation_rate(rate).await.unwrap().into_inner().operation.unwrap();
    assert_eq!(slow.rate_per_second, 2);
    let pending = get(&wire, &waiting.id, None).await.unwrap();
    assert!(pending.figures.unwrap().scanned == 0 && pending.shards.iter().any(|shard| !shard.ended));

    let of = CancelOperationRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let cancel = |id: &str| CancelOperationRequest { operation_id: id.into(), ..of.clone() };
    admin(&wire).cancel_operation(cancel(&first.id)).await.unwrap();
    let done = ended(&wire, first.clone()).await;
    let changed = done.figures.unwrap().changed;
    assert!(done.state() == OperationState::Cancelled && changed < 1_000, "{done:?}");
    let again = admin(&wire).cancel_operation(cancel(&first.id)).await.unwrap().into_inner();
    assert_eq!(again.operation, Some(done), "it is as the call wants it");
    let waiting = ended(&wire, waiting).await;
    assert_eq!(figures(&waiting)[1], 1_000 - changed);
    let late = admin(&wire).cancel_operation(cancel(&waiting.id)).await.unwrap_err();
    assert!(late.message().ends_with("has ended: it has done its work"), "{late}");
    RefusalDetails::call(Err::<(), _>(late)).is(Code::FailedPrecondition, "OPERATION_ENDED", None);

    let list = ListOperationsRequest { namespace: NAMESPACE.into(), page_size: 1, ..Default::default() };
    let page = admin(&wire).list_operations(list.clone()).await.unwrap().into_inner();
    let page_token = page.next_page_token.clone();
    let rest = ListOperationsRequest { page_token, ..list };
    let rest = admin(&wire).list_operations(rest).await.unwrap().into_inner();
    assert_eq!((page.operations.len(), &rest.operations[0].id), (1, &first.id));
    assert!(rest.next_page_token.is_empty() && page.operations[0].shards.is_empty());
    let foreign = ListOperationsRequest { namespace: "other".into(), ..Default::default() };
    assert!(admin(&wire).list_operations(foreign).await.unwrap().into_inner().operations.is_empty());
    let foreign =
        GetOperationRequest { namespace: "other".into(), operation_id: first.id, ..Default::default() };
    RefusalDetails::call(admin(&wire).get_operation(foreign).await).is(
        Code::NotFound,
        "OPERATION_NOT_FOUND",
        None,
    );
}

#[tokio::test]
async fn an_operation_fails_where_the_topic_can_not_be_made_and_says_why() {
    let wire = Wire::with("[limits]\ntopics_per_namespace = 1\n").await;
    dead(&wire, "mail", 3, "rejected").await;
    let elsewhere =
        StartOperationRequest { to_topic: "other".into(), ..request(OperationKind::Redrive, "mail") };
    let started = start(&wire, elsewhere).await.unwrap().operation.unwrap();
    let failed = ended(&wire, started).await;
    assert_eq!((failed.state(), figures(&failed)), (OperationState::Failed, [0; 4]));
    let error = failed.error.as_ref().unwrap();
    assert_eq!(
        (error.code, failed.error_reason.as_str()),
        (Code::ResourceExhausted as i32, "TOO_MANY_TOPICS")
    );
    assert!(error.message.contains("topic other can't be made"), "{}", error.message);
    let of_shards = failed.shards.iter().filter(|shard| shard.error.is_some());
    assert!(of_shards.clone().count() >= 1 && of_shards.clone().all(|shard| shard.ended && !shard.silent));
    assert!(failed.ended_at.is_some() && failed.estimated_end.is_none());
    wire.wait_for_metric("forebay_operations{state=\"failed\"}", |count| count == 1.0).await;
    assert_eq!(
        run(&wire, request(OperationKind::Redrive, "mail")).await,
        [3, 3, 0, 0],
        "they are still there"
    );
    wire.wait_for_metric("forebay_operations{state=\"succeeded\"}", |count| count == 1.0).await;
}

#[tokio::test]
async fn an_operation_that_runs_says_when_it_will_have_ended() {
    let wire = Wire::start().await;
    wire.stored(vec![item("mail"); 600]).await;
    let slow = StartOperationRequest { rate_per_second: 4, ..request(OperationKind::Purge, "mail") };
    let begun = Instant::now();
    let clock = SystemClock::default();
    let mut asked_at = clock.wall();
    let mut running = start(&wire, slow).await.unwrap().operation.unwrap();
    while running.state() != OperationState::Running {
        assert!(begun.elapsed() < END_TIMEOUT, "{running:?}");
        asked_at = clock.wall();
        running = get(&wire, &running.id, Some(running.version)).await.unwrap();
    }
    let answered_at = clock.wall();
    assert_eq!(running.estimated_total, 600);
    // The rest takes this long at four a second, from the time of the answer on.
    let left = Duration::from_millis(250 * (600 - running.figures.unwrap().scanned));
    let end = micros(&running.estimated_end);
    let expected = asked_at.plus(left).as_micros()..=answered_at.plus(left).as_micros();
    assert!(expected.contains(&end), "{end} is not in {expected:?}: {running:?}");
    wire.wait_for_metric("forebay_operations{state=\"running\"}", |count| count == 1.0).await;
    let idle = wire.metric("forebay_operation_idle_seconds{operation=\"\"}").await;
    assert!(idle <= begun.elapsed().as_secs_f64(), "{idle} s, and it has not run for so long");
}

#[tokio::test]
async fn it_is_counted_how_often_an_item_was_redriven() {
    let wire = Wire::start().await;
    dead(&wire, "mail", 1, "no").await;
    dead(&wire, "mail", 2, "no").await;
    let die = async || {
        for taken in wire.take("mail", 100).await {
            let nack = Nack { receipt: taken.receipt, reason: "no".into(), ..Default::default() };
            assert_eq!(wire.nack(nack).await, None);
        }
    };
    let redrive = || request(OperationKind::Redrive, "mail");
    let once = StartOperationRequest { max_redrives: Some(1), ..redrive() };
    let one = StartOperationRequest { limit: 1, ..redrive() };
    assert_eq!(run(&wire, one).await[1], 1);
    die().await;
    let counted = start(&wire, StartOperationRequest { dry_run: true, ..once.clone() }).await.unwrap();
    assert_eq!(figures(&counted.operation.unwrap())[0], 2, "it would change two");
    assert_eq!(run(&wire, once.clone()).await, [3, 2, 1, 0]);
    die().await;
    assert_eq!(run(&wire, once).await, [3, 0, 3, 0]);
    let list = ListItemsRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        state: ItemState::Dead.into(),
        filter: "redrives = 1".into(),
        ..Default::default()
    };
    let listed = admin(&wire).list_items(list).await.unwrap().into_inner().items;
    assert!(listed.len() == 3 && listed.iter().all(|item| item.redrives == 1), "{listed:?}");
    let filtered = StartOperationRequest { filter: "redrives > 1".into(), ..redrive() };
    assert_eq!(run(&wire, filtered).await, [0; 4]);
}
