//! Answers to callers of a stopping node.

use std::time::Duration;

use forebay_proto::v1::{DequeueRequest, EnqueueRequest};

use super::{NAMESPACE, RefusalDetails, Wire, asked, item, seconds};

#[tokio::test]
async fn a_stopping_node_answers_parked_calls_and_exits() {
    let wire = Wire::start().await;
    let mut client = wire.client();
    let poll = tokio::spawn(async move {
        let request = DequeueRequest { wait: Some(seconds(20)), ..asked("quiet", 1) };
        client.dequeue(request).await
    });
    wire.wait_for_polls(1).await;
    let mut client = wire.client();
    let calls = tokio::spawn(async move {
        // One call after the other until the node has exited. Every refusal has its details.
        let mut done = 0;
        loop {
            let items = vec![item("t")];
            let request = EnqueueRequest { namespace: NAMESPACE.into(), items, ..EnqueueRequest::default() };
            match client.enqueue(request).await {
                Ok(answer) if answer.get_ref().results[0].error.is_none() => done += 1,
                Ok(answer) => {
                    assert_eq!(
                        RefusalDetails::member(&answer.get_ref().results[0].error).reason,
                        "NODE_DRAINING"
                    );
                }
                // A status without details comes from the connection, not from the node.
                Err(status) if status.details().is_empty() => return done,
                Err(status) => assert_eq!(RefusalDetails::call::<()>(Err(status)).reason, "NODE_DRAINING"),
            }
        }
    });
    wire.stored(vec![item("t")]).await;
    let Wire { node, folder, .. } = wire;
    let (status, took) = node.terminate().await;
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(25), "{took:?}");
    assert!(poll.await.unwrap().unwrap().into_inner().items.is_empty(), "a long poll is answered empty");
    assert!(calls.await.unwrap() > 0);
    drop(folder);
}
