//! Dead letters: they are deleted after their retention, and take no memory of their topics.

use forebay_proto::v1::{Ack, AckRequest, EnqueueRequest, Nack, NackRequest};

use super::{NAMESPACE, RefusalDetails, Wire, asked, item};

/// Dead letters of the usual namespace are kept, others are deleted at once. Empty topics are forgotten soon.
const SETTINGS: &str = "[engine]\nidle_topic_ms = 300\ndead_letter_retention_ms = 100\n\
                        [namespace.wire]\ndead_letter_retention_ms = 0\n";

/// An item of this namespace dies.
async fn die(wire: &Wire, namespace: &str) {
    let (namespace, items) = (namespace.to_owned(), vec![item("t")]);
    let request = EnqueueRequest { namespace: namespace.clone(), items, ..Default::default() };
    wire.client().enqueue(request).await.unwrap();
    let mut request = asked("t", 1);
    request.namespace.clone_from(&namespace);
    let receipt = wire.client().dequeue(request).await.unwrap().into_inner().items.remove(0).receipt;
    let nacks = vec![Nack { receipt: receipt.clone(), dead_letter: true, ..Default::default() }];
    let nack = NackRequest { namespace: namespace.clone(), nacks };
    assert_eq!(wire.client().nack(nack).await.unwrap().into_inner().results[0].error, None);
    // Deleted or not, it is not there any more for its consumer.
    let ack = AckRequest { namespace, acks: vec![Ack { receipt }] };
    let error = wire.client().ack(ack).await.unwrap().into_inner().results.remove(0).error;
    assert_eq!(RefusalDetails::member(&error).reason, "LEASE_LOST");
}

fn sum(status: &serde_json::Value, field: &str) -> u64 {
    let shards = status["engine"]["shards"].as_array().unwrap();
    shards.iter().map(|shard| shard[field].as_u64().unwrap()).sum()
}

#[tokio::test]
async fn dead_letters_go_after_their_retention_and_their_topics_leave_memory() {
    let wire = Wire::with(SETTINGS).await;
    for _ in 0..3 {
        die(&wire, NAMESPACE).await;
        die(&wire, "other").await;
    }
    wire.wait_for("one namespace's dead letters are deleted", |status| sum(status, "dead") == 3).await;
    wire.wait_for("no topic is in memory", |status| sum(status, "topics") == 0).await;
    wire.wait_for_metric("forebay_dead_letters_deleted_total", |deleted| deleted == 3.0).await;
    assert_eq!(sum(&wire.status().await, "dead"), 3, "those that are kept for ever are counted");

    wire.stored(vec![item("t"); 2]).await;
    assert_eq!(wire.take("t", 2).await.len(), 2, "the topic begins anew");
    assert_eq!(sum(&wire.status().await, "dead"), 3);
}
