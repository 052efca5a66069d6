//! Every call as JSON over HTTP: the life of an item, and what JSON itself brings.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use forebay_proto::v1::{EnqueueResponse, GetActiveTopicsRequest, GetActiveTopicsResponse};
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    NAMESPACE, Wire,
    http1::{Answer, Request},
    item,
};

impl Wire {
    /// Sends a request over HTTP.
    pub async fn http(&self, request: Request) -> Answer {
        request.send(&self.node.http).await
    }

    /// Makes a call as JSON.
    pub async fn json(&self, method: &str, message: Value) -> Answer {
        self.http(Request::call(method, &message)).await
    }
}

/// An item of the topic `t` as JSON.
pub fn one(payload: &str) -> Value {
    let payload = BASE64_STANDARD.encode(payload);
    json!({"namespace": NAMESPACE, "items": [{"topic": "t", "payload": payload}]})
}

#[tokio::test]
async fn an_item_lives_its_life_in_json() {
    let wire = Wire::start().await;
    let enqueue = json!({
        "namespace": NAMESPACE,
        "items": [
            {"topic": "t", "priority": 5, "payload": "aGVsbG8=", "metadata": "bQ", "ttl": "3600.5s",
             "headers": {"tenant": "a"}, "max_attempts": "3"},
            {"topic": "t", "priority": "-1", "payload": "dXJnZW50"},
        ],
    });
    let stored = wire.json("Enqueue", enqueue).await.message();
    let ids: Vec<_> = stored["results"].as_array().unwrap().iter().map(|result| &result["itemId"]).collect();
    assert_eq!(ids.len(), 2);
    assert_eq!(stored["results"][0]["duplicate"], false, "defaults are written");
    assert_eq!(stored["results"][0]["reason"], "");

    let dequeue = json!({
        "namespace": NAMESPACE, "demands": [{"topic": "t", "maxItems": 2}], "wait": "10s", "consumer": "c",
    });
    let items = wire.json("Dequeue", dequeue).await.message()["items"].clone();
    assert_eq!((&items[0]["itemId"], &items[1]["itemId"]), (ids[1], ids[0]), "the urgent one first");
    assert_eq!(items[1]["payload"], "aGVsbG8=");
    assert_eq!(items[1]["metadata"], "bQ==");
    assert_eq!(items[1]["headers"], json!({"tenant": "a"}));
    assert_eq!((&items[1]["priority"], &items[1]["attempt"]), (&json!(5), &json!(1)));
    assert_eq!(items[1]["deliveryPolicy"], "DELIVERY_POLICY_AT_LEAST_ONCE");
    assert!(items[1]["enqueuedAt"].as_str().unwrap().ends_with('Z'), "{items}");
    assert!(items[1]["expiresAt"] != Value::Null && items[0].get("expiresAt").is_none(), "{items}");

    let receipt = |item: usize| items[item]["receipt"].clone();
    let extend =
        json!({"namespace": NAMESPACE, "extensions": [{"receipt": receipt(0), "leaseDuration": "60s"}]});
    let extended = wire.json("ExtendLease", extend).await.message();
    assert!(extended["results"][0]["leaseExpiresAt"].is_string(), "{extended}");
    let acks = json!({"namespace": NAMESPACE, "acks": [{"receipt": receipt(0)}, {"receipt": receipt(0)}]});
    let acked = wire.json("Ack", acks).await.message();
    assert!(acked["results"][0].get("error").is_none(), "{acked}");
    let nack =
        json!({"namespace": NAMESPACE, "nacks": [{"receipt": receipt(1), "delay": "0s", "reason": "r"}]});
    assert!(wire.json("Nack", nack).await.message()["results"][0].get("error").is_none());
    let topics = wire.json("GetActiveTopics", json!({"namespace": NAMESPACE})).await.message();
    assert_eq!(topics["topics"][0]["readyCount"], "1", "64 bits are text: {topics}");
}

#[tokio::test]
async fn a_refused_member_has_its_reason_beside_its_error() {
    let wire = Wire::start().await;
    let items = json!([{"topic": "t"}, {"topic": "a b"}, {"topic": "t", "shard": 9}]);
    let results = wire.json("Enqueue", json!({"namespace": NAMESPACE, "items": items})).await.message();
    let results = &results["results"];
    assert!(results[0].get("error").is_none() && results[0]["itemId"] != "", "{results}");
    assert_eq!(results[1]["reason"], "INVALID_FIELD");
    assert_eq!(results[1]["error"]["code"], 3);
    assert_eq!(results[1]["error"]["details"], json!([]), "an Any would break clients");
    assert!(results[1].get("retryAfter").is_none(), "it would be refused again: {results}");
    assert_eq!(results[2]["reason"], "INVALID_FIELD");
}

#[tokio::test]
async fn protobuf_is_taken_and_given_as_it_is() {
    let wire = Wire::start().await;
    let request = forebay_proto::v1::EnqueueRequest {
        namespace: NAMESPACE.into(),
        items: vec![item("t"), item("a b")],
        ..Default::default()
    };
    let answer = wire.http(Request::post("Enqueue", "application/proto", request.encode_to_vec())).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/proto"));
    let results = EnqueueResponse::decode(&answer.body[..]).unwrap().results;
    assert!(!results[0].item_id.is_empty());
    let error = results[1].error.as_ref().unwrap();
    assert!(!error.details.is_empty(), "protobuf has the details");
    // An empty body is an empty message, which lacks a namespace.
    let empty = wire.http(Request::post("Enqueue", "application/proto", "")).await;
    empty.failure(400, "invalid_argument");
    let garbage = wire.http(Request::post("Enqueue", "application/proto", "\u{7f}garbage")).await;
    garbage.failure(400, "invalid_argument");
}

#[tokio::test]
async fn what_reads_may_be_asked_by_get() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t")]).await;
    let path = "/forebay.v1.QueueService/GetActiveTopics";
    let message = format!("%7B%22namespace%22%3A%22{NAMESPACE}%22%7D");
    let plain = format!("{path}?message={message}&encoding=json&connect=v1");
    let answer = wire.http(Request::get(&plain)).await;
    assert_eq!(answer.message()["topics"][0]["topic"], "t");
    assert_eq!(answer.header("cache-control"), "no-store");

    let request = GetActiveTopicsRequest { namespace: NAMESPACE.into(), ..Default::default() };
    let message = base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(request.encode_to_vec());
    let encoded = format!("{path}?encoding=proto&base64=1&message={message}");
    let answer = wire.http(Request::get(&encoded)).await;
    assert_eq!(answer.header("content-type"), "application/proto");
    assert_eq!(GetActiveTopicsResponse::decode(&answer.body[..]).unwrap().topics.len(), 1);
    let nodes = wire.http(Request::get("/forebay.v1.AdminService/ListNodes?encoding=json&message={}")).await;
    assert_eq!(nodes.message()["nodes"].as_array().unwrap().len(), 1);

    wire.http(Request::get(path)).await.failure(400, "invalid_argument");
    let changing = Request::get("/forebay.v1.QueueService/Enqueue?encoding=json&message={}");
    let refused = wire.http(changing).await;
    refused.failure(405, "unimplemented");
    assert_eq!(refused.header("allow"), "POST");
    assert!(wire.is_empty("nothing").await);
}

#[tokio::test]
async fn json_that_means_two_things_is_refused() {
    let wire = Wire::start().await;
    let send = async |text: &str| wire.http(Request::post("Enqueue", "application/json", text)).await;
    for (text, field) in [
        (r#"{"namespace": "a", "namespace": "b"}"#, None),
        (r#"{"namespace": "a", "requestId": "1", "request_id": "2"}"#, None),
        ("", None),
        ("[]", None),
        ("{", None),
        (r#"{"items": [{}, {"priority": "high"}]}"#, Some("items[1].priority")),
        (r#"{"items": [{"topic": "t", "priorty": 1}]}"#, Some("items[0].priorty")),
        (r#"{"namespace": "-", "items": [{"topic": "t"}]}"#, Some("namespace")),
        (r#"{"items": [{"payload": "%"}]}"#, Some("items[0].payload")),
        (r#"{"items": [{"deliveryPolicy": "AT_MOST_ONCE"}]}"#, Some("items[0].deliveryPolicy")),
    ] {
        let document = send(text).await.failure(400, "invalid_argument");
        let info = &document["details"][0]["debug"];
        assert_eq!((&info["reason"], &info["domain"]), (&json!("INVALID_FIELD"), &json!("forebay")));
        let violation = &document["details"][1]["debug"]["fieldViolations"][0]["field"];
        assert_eq!(violation.as_str(), field, "{document}");
    }
    let deep = format!(r#"{{"requestId": {}{}}}"#, "[".repeat(1_000), "]".repeat(1_000));
    let document = send(&deep).await.failure(400, "invalid_argument");
    assert!(document["message"].as_str().unwrap().contains("more than 64"), "{document}");
    let many = format!(r#"{{"items": [{}]}}"#, vec!["{}"; 200_000].join(","));
    let document = send(&many).await.failure(400, "invalid_argument");
    assert_eq!(document["details"][0]["debug"]["reason"], "TOO_LARGE", "{document}");
    assert!(wire.status().await["request_bytes"] == 0, "nothing is left over");
}
