//! Whose request ids are: those of Enqueue belong to the namespace, those of operators to their caller.

use forebay_proto::v1::{
    EnqueueItem, EnqueueRequest, OperationKind, StartOperationRequest,
    admin_service_client::AdminServiceClient, queue_service_client::QueueServiceClient,
};
use tonic::{Code, Request};

use super::{GuardedNode, OWN, bearer, file, record, token};

fn shown<T>(message: T, credential: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", credential.parse().unwrap());
    request
}

#[tokio::test]
async fn an_enqueue_is_repeated_by_any_holder_and_an_operation_by_its_caller() {
    let (one, two) = (token(1), token(2));
    let kept = [record(&one, &["own:all"]), record(&two, &["own:all"])];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let mut queue = QueueServiceClient::new(guarded.node.channel());
    let mut stored = Vec::new();
    for holder in [&one, &two] {
        let items = vec![EnqueueItem { topic: "t".into(), ..Default::default() }];
        let call = EnqueueRequest {
            namespace: OWN.into(),
            items,
            request_id: "import".into(),
            ..EnqueueRequest::default()
        };
        let answer = queue.enqueue(shown(call, &bearer(holder))).await.unwrap().into_inner();
        stored.push(answer.results[0].item_id.clone());
    }
    assert_eq!(stored[0], stored[1], "a repeat works with another token");

    let mut admin = AdminServiceClient::new(guarded.node.channel());
    let purge = |topic: &str| StartOperationRequest {
        namespace: OWN.into(),
        kind: OperationKind::Purge.into(),
        topic: topic.into(),
        request_id: "purge".into(),
        ..Default::default()
    };
    let mut begun = Vec::new();
    for (holder, topic) in [(&one, "t"), (&two, "u"), (&one, "t")] {
        let answer = admin.start_operation(shown(purge(topic), &bearer(holder))).await.unwrap();
        begun.push(answer.into_inner().operation.unwrap().id);
    }
    assert!(begun[0] != begun[1] && begun[0] == begun[2], "{begun:?}");
    let other = admin.start_operation(shown(purge("u"), &bearer(&one))).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
}
