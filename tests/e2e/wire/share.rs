//! Share of one caller in the memory for requests and long polls.

use std::time::Duration;

use forebay_proto::v1::{DequeueRequest, EnqueueItem, EnqueueRequest};
use tokio::time::{Instant, timeout};
use tonic::Code;

use super::{NAMESPACE, RefusalDetails, Wire, asked, demand, http2, item, seconds};

fn enqueue(namespace: &str, bytes: usize) -> EnqueueRequest {
    let items = vec![EnqueueItem { payload: vec![1; 128 << 10].into(), ..item("t") }; bytes >> 17];
    EnqueueRequest { namespace: namespace.into(), items, ..EnqueueRequest::default() }
}

#[tokio::test]
async fn unfinished_bodies_of_one_connection_leave_room_for_others() {
    let wire = Wire::with("[memory]\nrequest_bytes = 16777216\n[limits]\nrequest_bytes = 1048576\n").await;
    let mut stuck = http2::Connection::open(&wire.node.grpc, 65_535).await;
    let whole = http2::framed(&enqueue("hostile", 7 << 17));
    let (mut answers, mut bodies) = (Vec::new(), Vec::new());
    for number in 0..64 {
        let (answer, mut body) = stuck.begin("Enqueue").await;
        body.send_data(whole.slice(..whole.len() - 1), false).unwrap();
        answers.push(answer);
        bodies.push(body);
        if number == 1 {
            // For two there is room.
            wire.wait_for_metric("forebay_memory_bytes{budget=\"requests\"}", |bytes| bytes > 1.8e6).await;
        }
    }
    let began = Instant::now();
    // All but these are refused.
    let waiting = answers.drain(..2).collect::<Vec<_>>();
    let mut refused = 0;
    for answer in answers {
        let status = http2::refusal(answer.await.unwrap().headers()).expect("a refusal");
        assert!(status.message().contains("memory.request_bytes_per_connection"), "{status:?}");
        refused += 1;
        // Another tenant's calls are served meanwhile.
        let request = enqueue(NAMESPACE, 512 << 10);
        let results = wire.client().enqueue(request).await.unwrap().into_inner().results;
        assert!(results.iter().all(|result| result.error.is_none()));
    }
    // Calls that still wait for the rest of their body are ended after a while.
    for answer in waiting {
        let status = http2::refusal(answer.await.unwrap().headers()).expect("a refusal");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
        assert!(status.message().contains("node.body_timeout_ms"), "{status:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(25), "before the deadline of the calls");
    assert_eq!(refused, 62);
    wire.wait_for_metric("forebay_memory_bytes{budget=\"requests\"}", |bytes| bytes == 0.0).await;
}

#[tokio::test]
async fn a_call_with_too_many_members_is_refused_before_it_is_decoded() {
    let wire = Wire::start().await;
    let before = wire.node.peak_bytes();
    let request = EnqueueRequest {
        namespace: NAMESPACE.into(),
        items: vec![EnqueueItem::default(); 500_000],
        ..EnqueueRequest::default()
    };
    let message = http2::framed(&request);
    drop(request);
    let mut connection = http2::Connection::open(&wire.node.grpc, 65_535).await;
    let answer = connection.try_call("Enqueue", message).await.expect("an answer");
    let refused = RefusalDetails::call::<()>(Err(http2::refusal(answer.headers()).expect("a refusal")));
    assert_eq!((refused.code, refused.reason.as_str()), (Code::InvalidArgument, "TOO_LARGE"));
    // The kernel adds up pages of the program and of data at different moments: of a small process the second
    // figure may be the smaller one.
    let grown = wire.node.peak_bytes().saturating_sub(before);
    assert!(grown < 40 << 20, "{grown} bytes for a request of 1 MB");
}

/// A long poll for a hundred topics with long names.
fn wide(number: usize) -> DequeueRequest {
    let demands = (0..100).map(|topic| demand(&format!("{number:04}.{topic:03}.{}", "x".repeat(190)), 1));
    DequeueRequest { demands: demands.collect(), wait: Some(seconds(25)), ..asked("", 1) }
}

#[tokio::test]
async fn long_polls_of_one_tenant_have_a_share_of_memory() {
    let wire = Wire::with("[memory]\npoll_bytes = 36280320\n").await;
    let before = wire.node.resident_bytes();
    let mut connection = http2::Connection::open(&wire.node.grpc, 65_535).await;
    // A quarter is 8.65 MiB: 153 such polls.
    let (mut waiting, mut refused) = (Vec::new(), 0);
    for number in 0..200 {
        if number == 140 {
            wire.wait_for_polls(140).await;
        }
        let (mut answer, mut body) = connection.begin("Dequeue").await;
        body.send_data(http2::framed(&wide(number)), true).unwrap();
        if number < 140 {
            waiting.push((answer, body));
            continue;
        }
        match timeout(Duration::from_millis(500), &mut answer).await {
            Err(_) => waiting.push((answer, body)),
            Ok(answer) => {
                let status = http2::refusal(answer.unwrap().headers()).expect("a refusal");
                assert!(status.message().contains("memory.poll_bytes"), "{status:?}");
                refused += 1;
            }
        }
    }
    assert!((42..=52).contains(&refused), "{refused} of 200 are refused");
    let counted = wire.metric("forebay_memory_bytes{budget=\"polls\"}").await;
    assert!((8.6e6..=9.07008e6).contains(&counted), "{counted}");
    let grown = wire.node.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for long polls that count as 8.65 MiB");

    // Another tenant may wait, and this one again once its polls have ended.
    let other = DequeueRequest { namespace: "other".into(), wait: Some(seconds(1)), ..asked("t", 1) };
    assert!(wire.client().dequeue(other).await.unwrap().into_inner().items.is_empty());
    drop((waiting, connection));
    wire.wait_for_metric("forebay_memory_bytes{budget=\"polls\"}", |bytes| bytes == 0.0).await;
    let again = DequeueRequest { wait: Some(seconds(1)), ..asked("t", 1) };
    assert!(wire.client().dequeue(again).await.unwrap().into_inner().items.is_empty());
}
