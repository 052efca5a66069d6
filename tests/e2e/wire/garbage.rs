//! A hundred clients that send garbage do not disturb the others.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use forebay_proto::v1::{
    Ack, AckRequest, DequeueRequest, EnqueueItem, EnqueueRequest, queue_service_client::QueueServiceClient,
};
use rand::{Rng as _, RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    sync::watch,
    time::{Instant, timeout},
};
use tonic::{
    Code, Request,
    transport::{Channel, Endpoint},
};

use super::{LEASE, NAMESPACE, RefusalDetails, Wire, asked, item, raw, seconds, span};

const CLIENTS: u64 = 100;
/// Items that a well-behaved client processes at the same time.
const ROUNDS: usize = 40;
const METHODS: [&str; 7] =
    ["Enqueue", "Dequeue", "Ack", "Nack", "ExtendLease", "GetActiveTopics", "Nonsense"];

#[tokio::test]
async fn a_malformed_request_is_refused_with_details() {
    let wire = Wire::start().await;
    // The first field of every request is a string: a number in its place is a wrong type.
    let wrong_type = Bytes::from_static(&[0x08, 0x05]);
    let cut_short = Bytes::from_static(&[0x0a, 0x7f, b'x']);
    for method in &METHODS[..6] {
        for message in [&wrong_type, &cut_short] {
            let answer = raw::send(wire.node.channel(), method, message.clone()).await;
            RefusalDetails::call(answer).is(Code::InvalidArgument, "INVALID_FIELD", None);
        }
    }
    let answer = raw::send(wire.node.channel(), "Nonsense", Bytes::new()).await;
    RefusalDetails::call(answer).is(Code::Unimplemented, "UNIMPLEMENTED", None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_malicious_clients_disturb_nobody() {
    let wire = Wire::start().await;
    let address: Arc<str> = wire.node.grpc.clone().into();
    let (stop, stopped) = watch::channel(false);
    let mut malicious = Vec::new();
    for seed in 0..CLIENTS {
        malicious.push(tokio::spawn(attack_repeatedly(seed, address.clone(), stopped.clone())));
    }

    let mut slowest = Duration::ZERO;
    for round in 0..ROUNDS {
        let began = Instant::now();
        let payload = Bytes::from(format!("round {round}"));
        wire.stored(vec![EnqueueItem { payload: payload.clone(), ..item("good") }]).await;
        let got = wire.take_one("good").await;
        assert_eq!(got.payload, payload);
        assert_eq!(wire.ack(&got.receipt).await, None);
        slowest = slowest.max(began.elapsed());
    }
    stop.send(true).unwrap();
    let mut attacks = 0;
    for client in malicious {
        attacks += client.await.unwrap();
    }
    assert!(attacks >= CLIENTS * 2, "{attacks} attacks by {CLIENTS} clients");
    // On a small machine the load itself takes time. A starved caller would take far longer.
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");

    // Nothing is left over: no call in progress, no poll, no bytes, no item.
    wire.wait_for_polls(0).await;
    wire.wait_for("calls in progress end", |status| status["calls"] == 0 && status["request_bytes"] == 0)
        .await;
    assert!(wire.is_empty("good").await);
}

/// Makes random attacks until stopped. Returns how many.
async fn attack_repeatedly(seed: u64, address: Arc<str>, mut stopped: watch::Receiver<bool>) -> u64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut attacks = 0;
    while !*stopped.borrow() {
        let attack = attack(&mut random, &address);
        tokio::select! {
            // The outcome does not matter, only that the attack ends.
            _ = timeout(Duration::from_secs(30), attack) => attacks += 1,
            // A dropped sender means the same as a message.
            _ = stopped.changed() => {}
        }
    }
    attacks
}

async fn attack(random: &mut StdRng, address: &str) {
    match random.random_range(0..8) {
        0 => noise(random, address).await,
        1 => half_a_connection(random, address).await,
        2 => {
            let mut message = vec![0; random.random_range(0..4_096)];
            random.fill_bytes(&mut message);
            let method = METHODS[random.random_range(0..METHODS.len())];
            let _ = raw::send(channel(address), method, message.into()).await;
        }
        3 => {
            // Far over the limit.
            let _ = raw::send(channel(address), "Enqueue", vec![0x12; 8 << 20].into()).await;
        }
        4 => {
            let items = vec![EnqueueItem { topic: "no topic".into(), ..item("t") }; 1_500];
            let request =
                EnqueueRequest { namespace: "malicious".into(), items, ..EnqueueRequest::default() };
            let _ = QueueServiceClient::new(channel(address)).enqueue(request).await;
        }
        5 => {
            let acks = (0..1_000).map(|number| Ack { receipt: format!("no receipt {number}") }).collect();
            let request = AckRequest { namespace: NAMESPACE.into(), acks };
            let _ = QueueServiceClient::new(channel(address)).ack(request).await;
        }
        6 => {
            // The deadline passes during the call.
            let lease_duration = Some(span(LEASE));
            let ask = DequeueRequest { wait: Some(seconds(20)), lease_duration, ..asked("nothing", 10) };
            let mut request = Request::new(ask);
            request.set_timeout(Duration::from_millis(random.random_range(1..50)));
            let _ = QueueServiceClient::new(channel(address)).dequeue(request).await;
        }
        _ => {
            // The caller disconnects during the call.
            let items = vec![EnqueueItem { payload: vec![1; 16 << 10].into(), ..item("litter") }; 20];
            let request =
                EnqueueRequest { namespace: "malicious".into(), items, ..EnqueueRequest::default() };
            let mut client = QueueServiceClient::new(channel(address));
            let limit = Duration::from_millis(random.random_range(1..20));
            let _ = timeout(limit, client.enqueue(request)).await;
        }
    }
}

/// Bytes that are not HTTP/2.
async fn noise(random: &mut StdRng, address: &str) {
    let mut bytes = vec![0; random.random_range(1..64 << 10)];
    random.fill_bytes(&mut bytes);
    if let Ok(mut stream) = TcpStream::connect(address).await {
        let _ = stream.write_all(&bytes).await;
    }
}

/// A connection that starts correctly and is cut.
async fn half_a_connection(random: &mut StdRng, address: &str) {
    // Preface, empty SETTINGS, and the start of a HEADERS frame that is never completed.
    let mut bytes =
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\x40\0\x01\x04\0\0\0\x01".to_vec();
    bytes.truncate(random.random_range(1..=bytes.len()));
    if let Ok(mut stream) = TcpStream::connect(address).await {
        let _ = stream.write_all(&bytes).await;
    }
}

fn channel(address: &str) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}
