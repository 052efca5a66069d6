//! Callers that do not read their answers.

use forebay_proto::v1::{Ack, AckRequest, DequeueRequest, EnqueueItem};
use tonic::Code;

use super::{LEASE, NAMESPACE, RefusalDetails, Wire, asked, http2, item, span};

/// The answer has about 250 bytes a member, the request 2.
fn empty_receipts(members: usize) -> AckRequest {
    AckRequest { namespace: NAMESPACE.into(), acks: vec![Ack { receipt: String::new() }; members] }
}

/// Asks for empty answers, which are the smallest, until there is no room for one more.
async fn fill_up(deaf: &mut http2::Connection) -> Vec<http::Response<h2::RecvStream>> {
    let mut empty = Vec::new();
    loop {
        let answer = deaf.call("Dequeue", &asked("none", 1)).await;
        if http2::refusal(answer.headers()).is_some() {
            return empty;
        }
        empty.push(answer);
    }
}

#[tokio::test]
async fn answers_of_every_verb_count_until_they_are_read() {
    let wire = Wire::with(
        "[memory]\nunsent_bytes = 12582912\nunsent_bytes_per_connection = 4194304\n\
         [limits]\nrequest_bytes = 1048576\n",
    )
    .await;
    let before = wire.node.resident_bytes();
    let mut deaf = http2::Connection::open(&wire.node.grpc, 0).await;
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..1_000 {
        let answer = deaf.call("Ack", &empty_receipts(1_000)).await;
        match http2::refusal(answer.headers()) {
            None => held.push(answer),
            Some(status) => {
                assert!(status.message().contains("memory.unsent_bytes_per_connection"), "{status:?}");
                let refusal = RefusalDetails::call::<()>(Err(status));
                assert_eq!((refusal.code, refusal.reason.as_str()), (Code::ResourceExhausted, "OVERLOADED"));
                refused += 1;
            }
        }
    }
    let mut small = Vec::new();
    let grown = wire.node.resident_bytes().saturating_sub(before);
    assert!((8..=20).contains(&held.len()), "4 MiB of answers are held: {}", held.len());
    assert_eq!(held.len() + refused, 1_000);
    // All of them would be 200 MiB at least. What the allocator keeps beside the held ones differs by 15 MiB.
    assert!(grown < 64 << 20, "{grown} bytes of memory for 4 MiB of answers");
    let shown: f64 = wire.metric("forebay_memory_bytes{budget=\"unsent\"}").await;
    assert!((2e6..=4.3e6).contains(&shown), "{shown}");
    assert!(
        wire.metric("forebay_limit_refusals_total{limit=\"memory.unsent_bytes_per_connection\"}").await
            >= 900.0
    );

    // Once there is no room for a small answer either, every verb is refused there, and none elsewhere.
    for members in [10, 1] {
        loop {
            let answer = deaf.call("Ack", &empty_receipts(members)).await;
            if http2::refusal(answer.headers()).is_some() {
                break;
            }
            small.push(answer);
        }
    }
    let empty = fill_up(&mut deaf).await;
    for method in ["Enqueue", "Dequeue", "Nack", "ExtendLease", "GetActiveTopics"] {
        let answer = deaf.call(method, &AckRequest::default()).await;
        let refusal = http2::refusal(answer.headers()).expect(method);
        assert_eq!(refusal.code(), Code::ResourceExhausted, "{method}: {refusal:?}");
    }
    wire.stored(vec![item("t")]).await;
    assert_eq!(wire.take("t", 1).await.len(), 1);

    // Once it reads, it is served again.
    deaf.read_on(1 << 20);
    for answer in held {
        assert!(http2::read(answer).await > 200_000);
    }
    for answer in small {
        assert!(http2::read(answer).await > 200);
    }
    for answer in empty {
        http2::read(answer).await;
    }
    wire.wait_for_metric("forebay_memory_bytes{budget=\"unsent\"}", |bytes| bytes == 0.0).await;
    let answer = deaf.call("Ack", &empty_receipts(1_000)).await;
    assert!(http2::refusal(answer.headers()).is_none());
    assert!(http2::read(answer).await > 200_000);
}

#[tokio::test]
async fn items_beyond_the_share_of_a_connection_are_given_back() {
    let wire = Wire::with(
        "[memory]\nunsent_bytes = 12582912\nunsent_bytes_per_connection = 4194304\n\
         [limits]\nrequest_bytes = 1048576\n",
    )
    .await;
    for _ in 0..30 {
        wire.stored(vec![EnqueueItem { payload: vec![1; 256 << 10].into(), ..item("t") }; 3]).await;
    }
    // All of them are in progress before the first is answered.
    let mut deaf = http2::Connection::open(&wire.node.grpc, 0).await;
    let request = DequeueRequest { lease_duration: Some(span(LEASE)), ..asked("t", 10) };
    let mut calls = Vec::new();
    for _ in 0..9 {
        let (answer, mut body) = deaf.begin("Dequeue").await;
        body.send_data(http2::framed(&request), true).unwrap();
        calls.push(answer);
    }
    let mut held = Vec::new();
    for call in calls {
        let answer = call.await.unwrap();
        match http2::refusal(answer.headers()) {
            None => held.push(answer),
            Some(status) => assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}"),
        }
    }
    let unsent = wire.metric("forebay_memory_bytes{budget=\"unsent\"}").await;
    assert!(unsent <= 4.3e6, "{unsent} bytes in {} answers", held.len());
    // Items that were leased for a refused answer are ready again, at once.
    let given = 10 * held.len();
    assert!((10..=20).contains(&given), "{given}");
    drop((held, deaf));
    let leased = |status: &serde_json::Value| {
        let shards = status["engine"]["shards"].as_array().unwrap();
        shards.iter().map(|shard| shard["leased"].as_u64().unwrap()).sum::<u64>()
    };
    wire.wait_for("release", |status| leased(status) == given as u64).await;
    let mut left = 90 - given;
    while left > 0 {
        let items = wire.take("t", 10).await;
        assert!(!items.is_empty(), "{left} items are missing");
        left -= items.len();
    }
}
