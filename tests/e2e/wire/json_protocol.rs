//! Rules of the protocol for URLs, headers, status codes and compression.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use serde_json::{Value, json};

use super::{NAMESPACE, Wire, http1::Request, item, json::one};

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn gunzip(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
    plain
}

#[tokio::test]
async fn what_is_not_there_is_unimplemented_and_json() {
    let wire = Wire::start().await;
    for path in [
        "/forebay.v1.QueueService/Nothing",
        "/forebay.v1.QueueService/enqueue",
        "/forebay.v1.QueueService/Enqueue/",
        "/forebay.v1.QueueService",
        "/forebay.v1.Nothing/Enqueue",
        "/forebay.v2.QueueService/Enqueue",
        "/forebay.peer.v1.PeerService/Enqueue",
        "/forebay.",
    ] {
        let post = wire.http(Request::post(path, "application/json", "{}")).await;
        let document = post.failure(501, "unimplemented");
        assert_eq!(document["details"][0]["debug"]["reason"], "UNIMPLEMENTED");
        wire.http(Request::get(path)).await.failure(501, "unimplemented");
    }
    for path in ["/nothing", "/grpc.health.v1.Health/Check", "/v1.QueueService/Enqueue"] {
        assert_eq!(wire.http(Request::post(path, "application/json", "{}")).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn every_service_is_served() {
    let wire = Wire::start().await;
    let path = "/forebay.v1.AdminService/ListShards";
    let shards = wire.http(Request::post(path, "application/json", "{}")).await.message();
    assert_eq!(shards["shards"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn methods_and_types_that_are_not_taken_say_which_are() {
    let wire = Wire::start().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = wire.http(Request::call("Ack", &json!({})).by(method)).await;
        answer.failure(405, "unimplemented");
        assert_eq!(answer.header("allow"), "POST");
    }
    let read = wire.http(Request::call("GetActiveTopics", &json!({})).by("PUT")).await;
    assert_eq!((read.status, read.header("allow")), (405, "GET, POST"));
    for kind in
        ["text/plain", "application/connect+json", "application/grpc-web", "application/json; charset=x"]
    {
        let answer = wire.http(Request::post("Enqueue", kind, one("p").to_string())).await;
        answer.failure(415, "invalid_argument");
        assert_eq!(answer.header("accept-post"), "application/json, application/proto");
    }
    let none = Request { headers: Vec::new(), ..Request::call("Enqueue", &one("p")) };
    wire.http(none).await.failure(415, "invalid_argument");
    assert!(wire.is_empty("t").await, "nothing was stored");
    let utf8 = Request::post("Enqueue", "application/json; charset=utf-8", one("p").to_string());
    wire.http(utf8).await.message();
}

#[tokio::test]
async fn a_version_or_a_timeout_that_makes_no_sense_is_refused() {
    let wire = Wire::start().await;
    let with = async |name: &str, value: &str| {
        wire.http(Request::call("Enqueue", &one("p")).with(name, value)).await
    };
    with("Connect-Protocol-Version", "1").await.message();
    with("Connect-Timeout-Ms", "9999999999").await.message();
    with("Connect-Protocol-Version", "2").await.failure(400, "invalid_argument");
    for wrong in ["", "5s", "-1", "12345678901"] {
        with("Connect-Timeout-Ms", wrong).await.failure(400, "invalid_argument");
    }
    for soon in ["0", "1"] {
        with("Connect-Timeout-Ms", soon).await.failure(504, "deadline_exceeded");
    }
    // A timeout ends the long poll, and the answer still arrives.
    let poll = json!({"namespace": NAMESPACE, "demands": [{"topic": "none", "maxItems": 1}], "wait": "20s"});
    let answer = wire.http(Request::call("Dequeue", &poll).with("Connect-Timeout-Ms", "700")).await;
    assert_eq!(answer.message(), json!({"items": []}));
}

#[tokio::test]
async fn a_refused_call_has_a_status_and_says_when_to_come_back() {
    let wire = Wire::with("[limits]\nleased_per_topic = 1\n").await;
    let none = wire.json("Enqueue", json!({"items": [{"topic": "t"}]})).await;
    let document = none.failure(400, "invalid_argument");
    assert_eq!(document["details"][1]["type"], "google.rpc.BadRequest");
    assert_eq!(document["details"][1]["debug"]["fieldViolations"][0]["field"], "namespace");
    assert!(!document["details"][1]["value"].as_str().unwrap().contains('='), "without padding");

    wire.stored(vec![item("t"), item("t"), item("t")]).await;
    wire.take("t", 1).await;
    let demands = json!([{"topic": "t", "maxItems": 1}]);
    let full = wire.json("Dequeue", json!({"namespace": NAMESPACE, "demands": demands})).await;
    let document = full.failure(429, "resource_exhausted");
    assert_eq!(document["details"][0]["debug"]["reason"], "TOO_MANY_LEASED");
    let types: Vec<_> =
        document["details"].as_array().unwrap().iter().map(|detail| &detail["type"]).collect();
    assert!(types.contains(&&json!("google.rpc.RetryInfo")), "{document}");
    assert!(full.header("retry-after").parse::<u64>().unwrap() >= 1, "{full:?}");

    let prefix = json!({"namespace": NAMESPACE, "demands": [{"topicPrefix": "t", "maxItems": 1}]});
    wire.json("Dequeue", prefix).await.failure(429, "resource_exhausted");
}

#[tokio::test]
async fn every_answer_has_a_request_id_and_is_not_kept() {
    let wire = Wire::start().await;
    let mut ids = std::collections::HashSet::new();
    for answer in [wire.json("Enqueue", one("p")).await, wire.json("Enqueue", json!({})).await] {
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-forebay-request-id").len(), 16);
        assert!(answer.headers.keys().all(|name| !name.starts_with("grpc-")), "{answer:?}");
        ids.insert(answer.header("x-forebay-request-id").to_owned());
    }
    assert_eq!(ids.len(), 2);
}

#[tokio::test]
async fn gzip_is_read_and_given_to_those_who_want_it() {
    let wire = Wire::start().await;
    let packed = Request::post("Enqueue", "application/json", gzip(one("packed").to_string().as_bytes()));
    wire.http(packed.with("Content-Encoding", "gzip")).await.message();
    let plain = Request::call("Enqueue", &one("plain")).with("Content-Encoding", "identity");
    wire.http(plain).await.message();
    let empty = Request::post("Enqueue", "application/proto", "").with("Content-Encoding", "gzip");
    let document = wire.http(empty).await.failure(400, "invalid_argument");
    assert_eq!(document["details"][1]["debug"]["fieldViolations"][0]["field"], "namespace", "it was read");
    let other = Request::call("Enqueue", &one("p")).with("Content-Encoding", "br");
    let document = wire.http(other).await.failure(501, "unimplemented");
    assert!(document["message"].as_str().unwrap().contains("gzip or identity"), "{document}");
    let broken = Request::call("Enqueue", &one("p")).with("Content-Encoding", "gzip");
    wire.http(broken).await.failure(400, "invalid_argument");

    let large = "x".repeat(2_000);
    wire.json("Enqueue", one(&large)).await.message();
    let dequeue = |max: u32| {
        let demands = json!([{"topic": "t", "maxItems": max}]);
        Request::call("Dequeue", &json!({"namespace": NAMESPACE, "demands": demands}))
    };
    let small = wire.http(dequeue(1).with("Accept-Encoding", "gzip")).await;
    assert_eq!(small.header("content-encoding"), "", "a small answer stays as it is");
    small.message();
    let packed = wire.http(dequeue(2).with("Accept-Encoding", "br, gzip")).await;
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.body.len() < 2_000);
    let answer: Value = serde_json::from_slice(&gunzip(&packed.body)).unwrap();
    assert_eq!(answer["items"].as_array().unwrap().len(), 2);
}
