//! Each call, page and form, with each kind of credential.

use forebay_access::{Record, Scope};
use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_types::Timestamp;
use prost_reflect::DescriptorPool;
use serde_json::json;

use super::{GuardedNode, OWN, Outcome, bearer, file, record, token};
use crate::wire::http1::Request;

/// Needs of a request. Written here once more, so that a change of the program's list is noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// Any valid credential.
    Any,
    /// A right in the namespace.
    Own(&'static str),
    /// A right in all namespaces.
    All(&'static str),
}

/// Needs of each call.
pub const CALLS: &[(&str, Needs)] = &[
    ("forebay.v1.QueueService/Enqueue", Needs::Own("produce")),
    ("forebay.v1.QueueService/Dequeue", Needs::Own("consume")),
    ("forebay.v1.QueueService/Ack", Needs::Own("consume")),
    ("forebay.v1.QueueService/Nack", Needs::Own("consume")),
    ("forebay.v1.QueueService/ExtendLease", Needs::Own("consume")),
    ("forebay.v1.QueueService/GetActiveTopics", Needs::Own("observe")),
    ("forebay.v1.AdminService/ListNodes", Needs::Any),
    ("forebay.v1.AdminService/ListShards", Needs::All("observe")),
    ("forebay.v1.AdminService/AddShard", Needs::All("admin")),
    ("forebay.v1.AdminService/DrainShard", Needs::All("admin")),
    ("forebay.v1.AdminService/RemoveShard", Needs::All("admin")),
    ("forebay.v1.AdminService/MoveShard", Needs::All("admin")),
    ("forebay.v1.AdminService/DrainNode", Needs::All("admin")),
    ("forebay.v1.AdminService/WhoAmI", Needs::Any),
    ("forebay.v1.AdminService/ListTopics", Needs::Own("observe")),
    ("forebay.v1.AdminService/GetTopic", Needs::Own("observe")),
    ("forebay.v1.AdminService/ListConsumers", Needs::Own("observe")),
    ("forebay.v1.AdminService/GetHistory", Needs::Own("observe")),
    ("forebay.v1.AdminService/ListItems", Needs::Own("observe")),
    ("forebay.v1.AdminService/GetItem", Needs::Own("observe")),
    ("forebay.v1.AdminService/CancelItems", Needs::Own("operate")),
    ("forebay.v1.AdminService/UpdateItem", Needs::Own("operate")),
    ("forebay.v1.AdminService/ExplainTopic", Needs::Own("observe")),
    ("forebay.v1.AdminService/ExplainItem", Needs::Own("observe")),
    ("forebay.v1.AdminService/GroupDeadLetters", Needs::Own("observe")),
    ("forebay.v1.AdminService/PutTopic", Needs::Own("admin")),
    ("forebay.v1.AdminService/DeleteTopic", Needs::Own("admin")),
    ("forebay.v1.AdminService/ListNamespaces", Needs::All("observe")),
    ("forebay.v1.AdminService/GetNamespace", Needs::Own("observe")),
    ("forebay.v1.AdminService/PutNamespace", Needs::Own("admin")),
    ("forebay.v1.AdminService/ExportSettings", Needs::Own("admin")),
    ("forebay.v1.AdminService/ApplySettings", Needs::Own("admin")),
    ("forebay.v1.AdminService/DeleteNamespace", Needs::Own("admin")),
    ("forebay.v1.AdminService/PauseTopic", Needs::Own("operate")),
    ("forebay.v1.AdminService/ResumeTopic", Needs::Own("operate")),
    ("forebay.v1.AdminService/StartOperation", Needs::Own("operate")),
    ("forebay.v1.AdminService/GetOperation", Needs::Own("operate")),
    ("forebay.v1.AdminService/ListOperations", Needs::Own("operate")),
    ("forebay.v1.AdminService/CancelOperation", Needs::Own("operate")),
    ("forebay.v1.AdminService/SetOperationRate", Needs::Own("operate")),
    ("forebay.v1.AdminService/ListAuditRecords", Needs::Own("admin")),
    ("forebay.v1.AdminService/CreateToken", Needs::Own("admin")),
    ("forebay.v1.AdminService/ListTokens", Needs::Own("admin")),
    ("forebay.v1.AdminService/RotateToken", Needs::Own("admin")),
    ("forebay.v1.AdminService/RevokeToken", Needs::Own("admin")),
];

/// A page.
pub struct Route {
    /// Its path, and the query that it is asked with.
    pub at: (&'static str, &'static str),
    /// Its needs.
    pub needs: Needs,
    /// People read it.
    pub people: bool,
    /// Status of the answer to callers that may see it.
    pub passed: u16,
}

const fn page(path: &'static str, query: &'static str, needs: Needs, passed: u16) -> Route {
    Route { at: (path, query), needs, people: true, passed }
}

const fn program(path: &'static str, needs: Needs) -> Route {
    Route { at: (path, ""), needs, people: false, passed: 200 }
}

/// An item, or an operation, that is not there.
const NO_ITEM: &str = "?ns=own&id=1-1";
const NO_OPERATION: &str = "?ns=own&id=0b1f6a1e55a14b0c8a52b8a1c2d3e4f5";

/// Each page.
pub const ROUTES: &[Route] = &[
    page("/", "", Needs::Any, 200),
    page("/topics", "?ns=own", Needs::Own("observe"), 200),
    page("/topic", "?ns=own&name=t", Needs::Own("observe"), 404),
    page("/namespace", "?ns=own", Needs::Own("observe"), 200),
    page("/item", NO_ITEM, Needs::Own("observe"), 200),
    page("/dead-letters", "?ns=own", Needs::Own("observe"), 200),
    page("/operations", "?ns=own", Needs::Own("operate"), 200),
    page("/operation", NO_OPERATION, Needs::Own("operate"), 404),
    page("/confirm", "?ns=own&name=t&action=purge", Needs::Own("operate"), 200),
    page("/consumers", "?ns=own", Needs::Own("observe"), 200),
    page("/shards", "", Needs::All("observe"), 200),
    page("/nodes", "", Needs::All("observe"), 200),
    page("/access", "?ns=own", Needs::Own("admin"), 200),
    page("/audit", "?ns=own", Needs::Own("admin"), 200),
    page("/search", "?ns=own&q=t", Needs::Own("observe"), 200),
    // The page that it follows decides.
    Route { at: ("/events", "?page=nothing"), needs: Needs::Any, people: false, passed: 400 },
    program("/status.json", Needs::All("observe")),
    program("/metrics", Needs::All("metrics")),
    program("/healthz", Needs::Nothing),
    program("/readyz", Needs::Nothing),
    page("/login", "", Needs::Nothing, 200),
    program("/assets/app.css", Needs::Nothing),
    program("/assets/app.js", Needs::Nothing),
    program("/assets/icon.svg", Needs::Nothing),
    // There is none.
    Route { at: ("/nothing", ""), needs: Needs::Any, people: false, passed: 404 },
];

/// Each form, and what it needs.
pub const SENT: &[(&str, Needs)] = &[
    ("/login", Needs::Nothing),
    ("/logout", Needs::Nothing),
    ("/pause", Needs::Own("operate")),
    ("/resume", Needs::Own("operate")),
    ("/operate", Needs::Own("operate")),
    ("/stop-operation", Needs::Own("operate")),
    ("/set-rate", Needs::Own("operate")),
    ("/enqueue", Needs::Own("produce")),
    ("/cancel-item", Needs::Own("operate")),
    ("/update-item", Needs::Own("operate")),
    ("/release-leases", Needs::Own("operate")),
    ("/put-topic", Needs::Own("admin")),
    ("/put-namespace", Needs::Own("admin")),
    ("/move-shard", Needs::All("admin")),
    ("/drain-shard", Needs::All("admin")),
    ("/drain-node", Needs::All("admin")),
    ("/create-token", Needs::Own("admin")),
    ("/rotate-token", Needs::Own("admin")),
    ("/revoke-token", Needs::Own("admin")),
];

/// Callers whose rights are in question, each with the credential that it shows.
pub struct Cast {
    /// The file of tokens.
    pub tokens: Vec<Record>,
    /// Credentials that are not valid, by name.
    pub bad: Vec<(&'static str, Vec<String>)>,
    /// All rights, in another namespace.
    pub foreign: String,
    /// All rights, in the own namespace.
    pub own: String,
    /// All rights everywhere.
    pub admin: String,
    /// All rights in the own namespace and everywhere, but one.
    pub without: Vec<(&'static str, String)>,
}

impl Cast {
    pub fn new() -> Self {
        let [foreign, own, admin, ended, revoked, other] = [1, 2, 3, 4, 5, 6].map(token);
        let mut tokens = vec![
            record(&foreign, &["other:all", "own-*:all"]),
            record(&own, &["own:all"]),
            record(&admin, &["*:all"]),
            Record { ends: Some(Timestamp::from_micros(1_000_000)), ..record(&ended, &["*:all"]) },
            Record { revoked: true, ..record(&revoked, &["*:all"]) },
        ];
        let mut without = Vec::new();
        for (seed, missing) in (20..).zip(Scope::ALL) {
            let scopes = Scope::ALL.into_iter().filter(|scope| *scope != missing);
            let scopes = scopes.map(Scope::as_str).collect::<Vec<_>>().join(",");
            let holder = token(seed);
            tokens.push(record(&holder, &[&format!("own:{scopes}"), &format!("*:{scopes}")]));
            without.push((missing.as_str(), bearer(&holder)));
        }
        // The id of one, the secret of another: only the hash tells.
        let wrong = Record { hashes: vec![other.hash()], ..record(&token(7), &["*:all"]) };
        tokens.push(wrong);
        let typo = bearer(&admin).replace("fby1_", "fby1_0");
        let bad = vec![
            ("malformed", vec![typo]),
            ("another scheme", vec!["Basic YTpi".to_owned()]),
            ("unknown", vec![bearer(&other)]),
            ("wrong", vec![bearer(&token(7))]),
            ("ended", vec![bearer(&ended)]),
            ("revoked", vec![bearer(&revoked)]),
            ("twice", vec![bearer(&admin), bearer(&admin)]),
        ];
        let [foreign, own, admin] = [foreign, own, admin].map(|token| bearer(&token));
        Self { tokens, bad, foreign, own, admin, without }
    }

    /// Returns the refusal that each caller with a valid token is to be told.
    pub fn expected(&self, needs: Needs) -> Vec<(&'static str, &str, String)> {
        let (foreign, own) = match needs {
            Needs::Own(_) => ("WRONG_NAMESPACE".to_owned(), String::new()),
            Needs::All(right) => (format!("SCOPE_MISSING {right}"), format!("SCOPE_MISSING {right}")),
            Needs::Any | Needs::Nothing => Default::default(),
        };
        let mut expected = vec![("foreign", &*self.foreign, foreign), ("own", &*self.own, own)];
        expected.push(("admin", &*self.admin, String::new()));
        for (missing, shown) in &self.without {
            let refused = matches!(needs, Needs::Own(right) | Needs::All(right) if right == *missing);
            let told = if refused { format!("SCOPE_MISSING {missing}") } else { String::new() };
            expected.push((missing, shown, told));
        }
        expected
    }
}

/// That a request without a valid credential was refused, in which words.
#[track_caller]
fn unauthenticated(what: &str, outcome: Outcome, expected: &str) -> String {
    let Outcome::Refused { authenticated: false, reason, message, .. } = outcome else {
        panic!("{what}: {outcome:?}")
    };
    assert_eq!(reason, expected, "{what}");
    message
}

#[tokio::test]
async fn every_call_is_decided_for_every_credential() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let channel = guarded.node.channel();
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let mut seen = 0;
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        let name = format!("{}/{}", method.parent_service().full_name(), method.name());
        let row = CALLS.iter().find(|row| row.0 == name);
        let needs = row.unwrap_or_else(|| panic!("{name} has no row in this table")).1;
        let named = matches!(needs, Needs::Own(_));
        let (path, namespace) = (format!("/{name}"), if named { OWN } else { "" });
        let message = if named { json!({"namespace": OWN}) } else { json!({}) };

        let mut said = Vec::new();
        for protocol in ["grpc", "json"] {
            let ask = async |shown: &[&str]| match protocol {
                "grpc" => guarded.grpc(channel.clone(), &path, namespace, shown).await,
                _ => guarded.json(&path, &message, shown).await,
            };
            unauthenticated(&name, ask(&[]).await, "NO_CREDENTIALS");
            for (kind, shown) in &cast.bad {
                let shown: Vec<_> = shown.iter().map(String::as_str).collect();
                let what = format!("{name} {protocol} {kind}");
                said.push(unauthenticated(&what, ask(&shown).await, "BAD_CREDENTIALS"));
            }
            for (kind, shown, expected) in cast.expected(needs) {
                assert_eq!(ask(&[shown]).await.short(), expected, "{name} {protocol} {kind}");
            }
        }
        assert!(said.iter().all(|words| *words == said[0]), "{name}: {said:?}");
        seen += 1;
    }
    assert_eq!(seen, CALLS.len(), "a row of this table is of no call");
}

#[tokio::test]
async fn services_beside_the_queue_are_decided_too() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let ask = async |path: &str, shown: &[&str]| {
        guarded.grpc(guarded.node.channel(), path, "", shown).await.short()
    };
    assert_eq!(ask("/grpc.health.v1.Health/Check", &[]).await, "");
    for path in [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/forebay.internal.v1.Peer/Anything",
        "/forebay.v1.QueueService/Nothing",
    ] {
        assert_eq!(ask(path, &[]).await, "NO_CREDENTIALS", "{path}");
        assert_eq!(ask(path, &[&cast.foreign]).await, "", "{path}");
    }
}

#[tokio::test]
async fn what_items_carry_is_for_those_with_inspect() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let call = async |path: &str, message: serde_json::Value, shown: &str| {
        let answer = Request::call(&format!("/forebay.v1.{path}"), &message).with("Authorization", shown);
        let answer = answer.send(&guarded.node.http).await;
        assert_eq!(answer.status, 200, "{path}");
        serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap()
    };
    let item = json!({"topic": "t", "payload": "c2VjcmV0", "metadata": "bQ==", "headers": {"h": "v"}});
    let items = json!({"namespace": OWN, "items": [item]});
    let stored = call("QueueService/Enqueue", items, &cast.own).await;
    let id = stored["results"][0]["itemId"].as_str().unwrap();
    let blind = &cast.without.iter().find(|(missing, _)| *missing == "inspect").unwrap().1;
    for (shown, sees) in [(&cast.own, true), (blind, false)] {
        let view =
            json!({"namespace": OWN, "topic": "t", "state": "ITEM_STATE_READY", "view": "ITEM_VIEW_FULL"});
        let listed = call("AdminService/ListItems", view, shown).await;
        let view = json!({"namespace": OWN, "itemId": id, "view": "ITEM_VIEW_FULL", "maxPayloadBytes": 9});
        let got = call("AdminService/GetItem", view, shown).await;
        for item in [&listed["items"][0], &got["item"]] {
            assert_eq!((&item["itemId"], &item["payloadSize"]), (&json!(id), &json!("6")));
            let carries = json!([item["payload"], item["metadata"], item["headers"]]);
            assert_eq!(
                carries,
                if sees { json!(["c2VjcmV0", "bQ==", {"h": "v"}]) } else { json!(["", "", {}]) }
            );
        }
    }
    // All namespaces take rights everywhere, whatever a namespace is called.
    let everywhere = json!({"namespace": "-"});
    let answer = Request::call("/forebay.v1.AdminService/ListTopics", &everywhere);
    assert_eq!(answer.with("Authorization", &cast.own).send(&guarded.node.http).await.status, 403);
    let topics = call("AdminService/ListTopics", everywhere, &cast.admin).await;
    assert_eq!(topics["topics"][0]["namespace"], OWN);
}
