//! Callers that do the worst they can, all at once, beside one that does not.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient,
};
use tokio::{
    io::AsyncReadExt as _,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{Wire, asked, demand, http2, item, seconds};

/// Small budgets, which are soon full. Their sum is 48 MiB.
const BUDGETS: &str = "
handshake_timeout_ms = 5000
body_timeout_ms = 1000
unread_timeout_ms = 10000
grpc_connections = 400
[limits]
request_bytes = 1048576
[memory]
index_bytes = 8388608
admit_bytes = 8388608
admit_shard_bytes = 4194304
admit_tenant_bytes = 1048576
request_bytes = 8388608
poll_bytes = 8388608
unsent_bytes = 16777216
unsent_bytes_per_connection = 2097152
";
/// Sum of the budgets.
const BUDGET_BYTES: u64 = (8 + 8 + 8 + 8 + 16) << 20;
/// How long the attacks last.
const ATTACK: Duration = Duration::from_secs(6);
pub const HOSTILE: &str = "hostile";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_mix_disturbs_nobody_and_stays_in_its_budgets() {
    let wire = Wire::with(BUDGETS).await;
    wire.stored(vec![item("friendly")]).await;
    let (grpc, http): (Arc<str>, Arc<str>) = (wire.node.grpc.clone().into(), wire.node.http.clone().into());
    let mut attacks = JoinSet::new();
    for number in 0..3 {
        let (acks, whole, polls) = (empty_receipts(), request(128 << 10, 7), wide(number));
        attacks.spawn(repeated(grpc.clone(), async move |address| deaf(address, "Ack", &acks).await));
        attacks.spawn(repeated(grpc.clone(), async move |address| unfinished(address, &whole).await));
        attacks.spawn(repeated(grpc.clone(), async move |address| wide_polls(address, &polls).await));
        attacks.spawn(repeated(grpc.clone(), async |address| flood(address).await));
    }
    let many = request(0, 500_000);
    attacks.spawn(repeated(grpc.clone(), async move |address| many_members(address, &many).await));
    attacks.spawn(repeated(grpc.clone(), async |address| silent(address).await));
    attacks.spawn(repeated(http, async |address| pages(address).await));

    let (began, mut rounds) = (Instant::now(), 0);
    while began.elapsed() < ATTACK {
        wire.stored(vec![item("friendly"); 3]).await;
        let items = wire.take("friendly", 3).await;
        assert!(!items.is_empty());
        for item in items {
            assert_eq!(wire.ack(&item.receipt).await, None);
        }
        rounds += 1;
    }
    attacks.shutdown().await;
    let peak = wire.node.peak_bytes();
    assert!(rounds >= 3, "{rounds} rounds in {ATTACK:?}");
    assert!(peak < BUDGET_BYTES + (100 << 20), "a peak of {} MiB, {rounds} rounds", peak >> 20);
    // It was an attack: each limit was met.
    for limit in
        ["memory.unsent_bytes_per_connection", "memory.request_bytes_per_connection", "memory.poll_bytes"]
    {
        let name = format!("forebay_limit_refusals_total{{limit=\"{limit}\"}}");
        assert!(wire.metric(&name).await > 0.0, "{limit}");
    }
    // Nothing is left over.
    wire.wait_for_metric("forebay_memory_bytes{budget=\"unsent\"}", |bytes| bytes == 0.0).await;
    wire.wait_for_metric("forebay_memory_bytes{budget=\"requests\"}", |bytes| bytes == 0.0).await;
    wire.wait_for_metric("forebay_memory_bytes{budget=\"polls\"}", |bytes| bytes == 0.0).await;
}

/// Attacks again and again, until the task is aborted.
pub async fn repeated(address: Arc<str>, attack: impl AsyncFn(&str)) {
    loop {
        // An attack that hangs is given up, as one whose connection is closed.
        let _ = timeout(Duration::from_secs(3), attack(&address)).await;
        sleep(Duration::from_millis(100)).await;
    }
}

/// An ack of a thousand empty receipts.
pub fn empty_receipts() -> Bytes {
    let acks = vec![Ack { receipt: String::new() }; 1_000];
    http2::framed(&AckRequest { namespace: HOSTILE.into(), acks })
}

/// An enqueue of so many items of so many bytes.
fn request(bytes: usize, items: usize) -> Bytes {
    let items = vec![EnqueueItem { payload: vec![1; bytes].into(), ..Default::default() }; items];
    http2::framed(&EnqueueRequest { namespace: HOSTILE.into(), items, ..EnqueueRequest::default() })
}

/// Long polls for a hundred topics each, with long names.
fn wide(number: usize) -> Vec<Bytes> {
    let poll = |poll: usize| {
        let name = |topic: usize| format!("{number}.{poll:03}.{topic:03}.{}", "x".repeat(190));
        let demands = (0..100).map(|topic| demand(&name(topic), 1)).collect();
        let namespace = HOSTILE.into();
        http2::framed(&DequeueRequest { namespace, demands, wait: Some(seconds(2)), ..asked("t", 1) })
    };
    (0..60).map(poll).collect()
}

/// Calls, and does not read.
pub async fn deaf(address: &str, method: &str, message: &Bytes) {
    let Some(mut connection) = http2::Connection::try_open(address, 0).await else { return };
    let mut held = Vec::new();
    while let Some(answer) = connection.try_call(method, message.clone()).await {
        held.push(answer);
        if held.len() > 20 {
            // Keeps what it has until it is disconnected.
            connection.closed().await;
            return;
        }
    }
}

/// Sends all of its requests but the last byte.
async fn unfinished(address: &str, whole: &Bytes) {
    let Some(mut connection) = http2::Connection::try_open(address, 65_535).await else { return };
    let mut open = Vec::new();
    for _ in 0..64 {
        let Some((answer, mut body)) = connection.try_begin("Enqueue").await else { return };
        let _ = body.send_data(whole.slice(..whole.len() - 1), false);
        open.push((answer, body));
    }
    for (answer, _body) in open {
        let _ = answer.await;
    }
}

/// Waits for many topics.
async fn wide_polls(address: &str, polls: &[Bytes]) {
    let Some(mut connection) = http2::Connection::try_open(address, 65_535).await else { return };
    let mut open = Vec::new();
    for poll in polls {
        let Some((answer, mut body)) = connection.try_begin("Dequeue").await else { return };
        let _ = body.send_data(poll.clone(), true);
        open.push((answer, body));
    }
    for (answer, _body) in open {
        let _ = answer.await;
    }
}

/// Enqueues as much as it can.
async fn flood(address: &str) {
    let Ok(mut client) = QueueServiceClient::connect(format!("http://{address}")).await else { return };
    for _ in 0..10 {
        let items = vec![EnqueueItem { payload: vec![1; 64 << 10].into(), ..item("flood") }; 8];
        let request = EnqueueRequest { namespace: HOSTILE.into(), items, ..EnqueueRequest::default() };
        let _ = client.enqueue(request).await;
    }
}

/// Connects and sends nothing.
async fn silent(address: &str) {
    let mut open = Vec::new();
    for _ in 0..200 {
        if let Ok(stream) = TcpStream::connect(address).await {
            open.push(stream);
        }
    }
    for mut stream in open {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
}

/// As many members as a request has room for.
async fn many_members(address: &str, many: &Bytes) {
    let Some(mut connection) = http2::Connection::try_open(address, 65_535).await else { return };
    let _ = connection.try_call("Enqueue", many.clone()).await;
}

/// Asks for pages and does not read them.
async fn pages(address: &str) {
    for path in ["/", "/metrics", "/status.json"] {
        let Ok(mut stream) = TcpStream::connect(address).await else { return };
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await;
    }
}
