//! A call for operators says how things are to be, so that whoever has lost its answer repeats it.

use std::time::Duration;

use forebay_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        CancelItemsRequest, CancelOperationRequest, DeleteTopicRequest, GetOperationRequest, GetTopicRequest,
        OperationKind, OperationState, PauseTopicRequest, PutTopicRequest, ResumeTopicRequest,
        SetOperationRateRequest, Side, StartOperationRequest, TopicSettings, UpdateItemRequest,
        admin_service_client::AdminServiceClient,
    },
};
use prost_reflect::DescriptorPool;
use tokio::time::Instant;
use tonic::{Code, transport::Channel};

use super::{NAMESPACE, RefusalDetails, Wire, item};

/// Operations on few items end within this time, on a machine that does much else.
const ENDED_TIMEOUT: Duration = Duration::from_secs(30);

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

/// Others would make a second one when they are repeated.
#[test]
fn the_calls_that_make_something_take_an_id() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let admin = pool.get_service_by_name("forebay.v1.AdminService").unwrap();
    let has_id =
        |method: &prost_reflect::MethodDescriptor| method.input().get_field_by_name("request_id").is_some();
    let named: Vec<_> = admin.methods().filter(has_id).map(|method| method.name().to_owned()).collect();
    assert_eq!(named, ["DeleteNamespace", "StartOperation", "CreateToken", "RotateToken"]);
}

#[tokio::test]
async fn settings_and_pauses_are_the_same_when_a_call_is_repeated() {
    let wire = Wire::start().await;
    wire.stored(vec![item("mail")]).await;
    let put = PutTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        settings: Some(TopicSettings { default_max_attempts: 5, ..Default::default() }),
        ..Default::default()
    };
    let pause = PauseTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        sides: vec![Side::Dequeue.into()],
        note: "moving".into(),
        ..Default::default()
    };
    let resume = ResumeTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        sides: vec![Side::Dequeue.into()],
        ..Default::default()
    };
    let first = admin(&wire).put_topic(put.clone()).await.unwrap().into_inner();
    let again = admin(&wire).put_topic(put).await.unwrap().into_inner();
    assert_eq!((again.version, again.settings), (first.version, first.settings));
    let first = admin(&wire).pause_topic(pause.clone()).await.unwrap().into_inner();
    let again = admin(&wire).pause_topic(pause).await.unwrap().into_inner();
    let notes = |it: &forebay_proto::v1::PauseTopicResponse| {
        it.pauses.iter().map(|pause| (pause.side, pause.note.clone())).collect::<Vec<_>>()
    };
    assert_eq!((notes(&again), again.pauses.len()), (notes(&first), 1));
    for _ in 0..2 {
        let left = admin(&wire).resume_topic(resume.clone()).await.unwrap().into_inner();
        assert_eq!(left.pauses, []);
    }
}

#[tokio::test]
async fn an_item_is_changed_and_cancelled_again() {
    let wire = Wire::start().await;
    let ids = wire.stored(vec![item("mail"), item("mail")]).await;
    let update = UpdateItemRequest {
        namespace: NAMESPACE.into(),
        item_id: ids[0].clone(),
        priority: Some(7),
        ..Default::default()
    };
    for _ in 0..2 {
        admin(&wire).update_item(update.clone()).await.unwrap();
    }
    let cancel = CancelItemsRequest { namespace: NAMESPACE.into(), item_ids: ids, ..Default::default() };
    let first = admin(&wire).cancel_items(cancel.clone()).await.unwrap().into_inner();
    assert!(first.results.iter().all(|it| it.error.is_none()), "{first:?}");
    let again = admin(&wire).cancel_items(cancel).await.unwrap().into_inner();
    let codes: Vec<_> = again.results.iter().map(|it| it.error.as_ref().unwrap().code).collect();
    assert_eq!(codes, [Code::NotFound as i32; 2], "they are not there, which was wanted");
}

#[tokio::test]
async fn an_operation_is_begun_once_and_may_be_ended_again() {
    let wire = Wire::start().await;
    wire.stored((0..500).map(|_| item("mail")).collect()).await;
    let start = StartOperationRequest {
        namespace: NAMESPACE.into(),
        kind: OperationKind::Purge.into(),
        topic: "mail".into(),
        rate_per_second: 1,
        request_id: "purge".into(),
        ..Default::default()
    };
    let mut begun = Vec::new();
    for _ in 0..2 {
        let answer = admin(&wire).start_operation(start.clone()).await.unwrap().into_inner();
        begun.push(answer.operation.unwrap().id);
    }
    assert_eq!(begun[0], begun[1]);
    let other = StartOperationRequest { topic: "other".into(), ..start };
    let refused = RefusalDetails::call(admin(&wire).start_operation(other).await);
    refused.is(Code::AlreadyExists, "REQUEST_ID_REUSED", Some("request_id"));
    let operation_id = begun.remove(0);
    let rate = SetOperationRateRequest {
        namespace: NAMESPACE.into(),
        operation_id: operation_id.clone(),
        rate_per_second: 2,
    };
    for _ in 0..2 {
        admin(&wire).set_operation_rate(rate.clone()).await.unwrap();
    }
    let cancel = CancelOperationRequest { namespace: NAMESPACE.into(), operation_id };
    let mut state = OperationState::Unspecified;
    while state != OperationState::Cancelled {
        let answer = admin(&wire).cancel_operation(cancel.clone()).await.unwrap().into_inner();
        state = answer.operation.unwrap().state();
    }
    admin(&wire).cancel_operation(cancel).await.unwrap();
    let refused = RefusalDetails::call(admin(&wire).set_operation_rate(rate).await);
    refused.is(Code::FailedPrecondition, "OPERATION_ENDED", None);
}

#[tokio::test]
async fn a_deletion_that_is_repeated_removes_what_has_come_in_between() {
    let wire = Wire::start().await;
    wire.stored((0..500).map(|_| item("mail")).collect()).await;
    // The next one of the topic waits for it.
    let slow = StartOperationRequest {
        namespace: NAMESPACE.into(),
        kind: OperationKind::Purge.into(),
        topic: "mail".into(),
        rate_per_second: 1,
        ..Default::default()
    };
    let slow = admin(&wire).start_operation(slow).await.unwrap().into_inner().operation.unwrap();
    let delete = DeleteTopicRequest {
        namespace: NAMESPACE.into(),
        topic: "mail".into(),
        force: true,
        ..Default::default()
    };
    let mut begun = Vec::new();
    for _ in 0..2 {
        begun.push(admin(&wire).delete_topic(delete.clone()).await.unwrap().into_inner().operation_id);
        wire.stored(vec![item("mail")]).await;
    }
    assert!(begun.iter().all(|id| !id.is_empty()) && begun[0] != begun[1], "{begun:?}");
    let cancel = CancelOperationRequest { namespace: NAMESPACE.into(), operation_id: slow.id };
    admin(&wire).cancel_operation(cancel).await.unwrap();
    let deadline = Instant::now() + ENDED_TIMEOUT;
    let get = |id: &String| GetOperationRequest {
        namespace: NAMESPACE.into(),
        operation_id: id.clone(),
        ..Default::default()
    };
    for id in &begun {
        let state = async || {
            admin(&wire).get_operation(get(id)).await.unwrap().into_inner().operation.unwrap().state()
        };
        while state().await != OperationState::Succeeded {
            assert!(Instant::now() < deadline, "{id}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let get = GetTopicRequest { namespace: NAMESPACE.into(), topic: "mail".into() };
    let topic = admin(&wire).get_topic(get).await.unwrap().into_inner().topic.unwrap();
    assert_eq!(topic.ready_count, 1, "what came after both stays: {topic:?}");
}
