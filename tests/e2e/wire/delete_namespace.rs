//! DeleteNamespace of more topics than one call takes.

use std::{collections::BTreeSet, time::Duration};

use forebay_proto::v1::{
    DeleteNamespaceRequest, GetNamespaceRequest, Namespace, NamespaceSettings, PutNamespaceRequest,
    admin_service_client::AdminServiceClient,
};
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;

use super::{NAMESPACE, Wire, item, seconds};

/// How long operations may take, on a machine that does much else.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

async fn namespace(wire: &Wire) -> Namespace {
    let request = GetNamespaceRequest { namespace: NAMESPACE.into() };
    admin(wire).get_namespace(request).await.unwrap().into_inner().namespace.unwrap()
}

/// A call empties so many topics. Who repeats it takes the others, and the settings go with the last call.
#[tokio::test]
async fn a_namespace_of_many_topics_goes_bit_by_bit() {
    let wire = Wire::start().await;
    let settings = NamespaceSettings { retry_delay: Some(seconds(9)), ..Default::default() };
    let put = PutNamespaceRequest {
        namespace: NAMESPACE.into(),
        settings: Some(settings),
        ..PutNamespaceRequest::default()
    };
    admin(&wire).put_namespace(put).await.unwrap();
    let topics: Vec<String> = (0..150).map(|number| format!("t{number}")).collect();
    wire.stored(topics.iter().map(|topic| item(topic)).collect()).await;
    let delete = DeleteNamespaceRequest {
        namespace: NAMESPACE.into(),
        force: true,
        request_id: "once".into(),
        ..Default::default()
    };
    let mut begun = BTreeSet::new();
    let mut calls = 0;
    loop {
        let answer = admin(&wire).delete_namespace(delete.clone()).await.unwrap().into_inner();
        assert!(answer.operation_ids.len() <= 100);
        begun.extend(answer.operation_ids);
        calls += 1;
        if !answer.goes_on {
            break;
        }
        let own = namespace(&wire).await;
        assert_eq!(own.settings, Some(settings), "call {calls} was not the last one");
        sleep(LOOK_EVERY).await;
    }
    assert!(calls > 1 && begun.len() == 150, "{} operations in {calls} calls", begun.len());
    let until = Instant::now() + TIMEOUT;
    loop {
        let own = namespace(&wire).await;
        if own.ready_count == 0 {
            assert_eq!(own.settings, None);
            return;
        }
        assert!(Instant::now() < until, "{own:?}");
        sleep(LOOK_EVERY).await;
    }
}
