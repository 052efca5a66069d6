//! Each call, page and form, with each kind of credential.

use forebay_access::{FORMS, PAGES, Record, Scope};
use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_types::Timestamp;
use prost_reflect::DescriptorPool;
use serde_json::json;

use super::{Guarded, OWN, Outcome, bearer, file, record, token};
use crate::{
    browser::{Browser, form, signature},
    wire::http1::Request,
};

/// What a request is to need. Written here once more, so that a change of the program's list is noticed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing.
    Nothing,
    /// Any valid credential.
    Any,
    /// A right in the namespace.
    Own(&'static str),
    /// A right in all namespaces.
    All(&'static str),
}

const CALLS: &[(&str, Needs)] = &[
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

/// Each page, what it needs, and whether people read it.
const ROUTES: &[(&str, Needs, bool)] = &[
    ("/", Needs::All("observe"), true),
    ("/status.json", Needs::All("observe"), false),
    ("/metrics", Needs::All("metrics"), false),
    ("/healthz", Needs::Nothing, false),
    ("/readyz", Needs::Nothing, false),
    ("/login", Needs::Nothing, true),
    ("/assets/app.css", Needs::Nothing, false),
    ("/assets/icon.svg", Needs::Nothing, false),
];

/// Each form, and what it needs.
const SENT: &[(&str, Needs)] = &[("/login", Needs::Nothing), ("/logout", Needs::Nothing)];

/// Those whose rights are in question, each with what it shows.
struct Cast {
    /// The file of tokens.
    tokens: Vec<Record>,
    /// Credentials that are not valid, by name.
    bad: Vec<(&'static str, Vec<String>)>,
    /// All rights, in another namespace.
    foreign: String,
    /// All rights, in the own namespace.
    own: String,
    /// All rights everywhere.
    admin: String,
    /// All rights in the own namespace and everywhere, but one.
    without: Vec<(&'static str, String)>,
}

impl Cast {
    fn new() -> Self {
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

    /// What each of those with a valid token is to be told.
    fn expected(&self, needs: Needs) -> Vec<(&'static str, &str, String)> {
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
    let guarded = Guarded::start(&file(&cast.tokens)).await;
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
async fn every_page_is_decided_for_every_credential() {
    let cast = Cast::new();
    let guarded = Guarded::start(&file(&cast.tokens)).await;
    let served: Vec<_> = PAGES.iter().map(|page| page.0).collect();
    assert_eq!(served, ROUTES.iter().map(|row| row.0).collect::<Vec<_>>(), "a page has no row in this table");
    let ask = async |path: &str, shown: &[&str]| {
        let with = |request: Request, text: &&str| request.with("authorization", text);
        shown.iter().fold(Request::get(path), with).send(&guarded.node.http).await
    };
    for (path, needs, people) in ROUTES.iter().chain(&[("/nothing", Needs::Any, false)]) {
        let (public, missing) = (*needs == Needs::Nothing, *needs == Needs::Any);
        let passed = if missing { 404 } else { 200 };
        let refused = if public { 200 } else { 401 };
        let answer = ask(path, &[]).await;
        // People are led to the login.
        assert_eq!(answer.status, if *people && !public { 303 } else { refused }, "{path}");
        assert_eq!(
            answer.header("www-authenticate"),
            if public || *people { "" } else { "Bearer" },
            "{path}"
        );
        for (kind, shown) in &cast.bad {
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            assert_eq!(ask(path, &shown).await.status, refused, "{path} {kind}");
        }
        for (kind, shown, expected) in cast.expected(*needs) {
            let status = if expected.is_empty() { passed } else { 403 };
            assert_eq!(ask(path, &[shown]).await.status, status, "{path} {kind}");
        }
    }
}

/// A browser that has logged in with what a header shows.
async fn logged_in(guarded: &Guarded, shown: &str) -> Browser {
    let mut browser = Browser::default();
    let answer = browser.log_in(&guarded.node, shown.strip_prefix("Bearer ").unwrap()).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    browser
}

#[tokio::test]
async fn every_page_is_decided_for_every_session() {
    let cast = Cast::new();
    let guarded = Guarded::start(&file(&cast.tokens)).await;
    let mut sessions = Vec::new();
    for (kind, shown, _) in cast.expected(Needs::Nothing) {
        sessions.push((kind, logged_in(&guarded, shown).await));
    }
    let mut over = logged_in(&guarded, &cast.admin).await;
    let out = signature(&over.clone().get(&guarded.node, "/").await, "logout");
    assert_eq!(over.clone().post(&guarded.node, "/logout", &[("form", &out)]).await.status, 303);
    for (path, needs, people) in ROUTES.iter().chain(&[("/nothing", Needs::Any, false)]) {
        let (public, missing) = (*needs == Needs::Nothing, *needs == Needs::Any);
        let passed = match *path {
            // There is nothing to log in to.
            "/login" => 303,
            _ if missing => 404,
            _ => 200,
        };
        for ((kind, browser), (_, _, expected)) in sessions.iter_mut().zip(cast.expected(*needs)) {
            let answer = browser.get(&guarded.node, path).await;
            assert_eq!(answer.status, if expected.is_empty() { passed } else { 403 }, "{path} {kind}");
            if let Some(right) = expected.strip_prefix("SCOPE_MISSING ") {
                assert!(answer.text().contains(&format!("the right {right}")), "{answer:?}");
                assert_eq!(answer.text().contains("<html"), *people, "{path} {kind}");
            }
            // A link of another site may lead there.
            let link = Request::get(path).with("Sec-Fetch-Site", "cross-site");
            assert_eq!(browser.send(&guarded.node, link).await.status, answer.status, "{path} {kind}");
        }
        let none = match (public, *people) {
            (true, _) => 200,
            (false, true) => 303,
            (false, false) => 401,
        };
        assert_eq!(over.get(&guarded.node, path).await.status, none, "{path} with a session that is over");
        // A header decides over a session.
        let (_, browser) = sessions.iter_mut().find(|(kind, _)| *kind == "admin").unwrap();
        let both = Request::get(path).with("authorization", &cast.bad[0].1[0]);
        let expected = if public { 200 } else { 401 };
        assert_eq!(browser.send(&guarded.node, both).await.status, expected, "{path}");
    }
}

#[tokio::test]
async fn every_form_is_decided_for_every_session() {
    let cast = Cast::new();
    let guarded = Guarded::start(&file(&cast.tokens)).await;
    let taken: Vec<_> = FORMS.iter().map(|form| form.0).collect();
    assert_eq!(taken, SENT.iter().map(|row| row.0).collect::<Vec<_>>(), "a form has no row in this table");
    let node = &guarded.node;
    for (path, needs) in SENT {
        for (kind, shown, expected) in cast.expected(*needs) {
            let mut browser = logged_in(&guarded, shown).await;
            let before = browser.session();
            for foreign in ["cross-site", "same-site", "none"] {
                let sent = form(path, &[]).with("Sec-Fetch-Site", foreign);
                assert_eq!(browser.send(node, sent).await.status, 403, "{path} {kind} {foreign}");
            }
            let sent = form(path, &[]).with("Sec-Fetch-Site", "same-origin");
            assert_eq!(
                browser.send(node, sent.with("Host", "evil.example")).await.status,
                421,
                "{path} {kind}"
            );
            // From here, but without a signature.
            assert_eq!(browser.post(node, path, &[("token", "x")]).await.status, 403, "{path} {kind}");
            assert_eq!(browser.session(), before);
            let page = match *path {
                "/login" => Browser::default().get(node, "/login").await,
                _ => browser.get(node, "/").await,
            };
            browser.keep(&page);
            let signed = signature(&page, &path[1..]);
            let token = shown.strip_prefix("Bearer ").unwrap();
            let answer = browser.post(node, path, &[("form", &signed), ("token", token)]).await;
            assert_eq!(answer.status, if expected.is_empty() { 303 } else { 403 }, "{path} {kind}");
        }
        // Without a session, and with a credential that a browser does not send by itself.
        for shown in ["", &cast.admin] {
            let sent = form(path, &[("token", "x")]);
            let sent = if shown.is_empty() { sent } else { sent.with("Authorization", shown) };
            assert_eq!(sent.send(&node.http).await.status, 403, "{path}");
            let sent = form(path, &[("token", "x")]).with("Sec-Fetch-Site", "same-origin");
            assert_eq!(sent.send(&node.http).await.status, 403, "{path} without a signature");
        }
    }
}

#[tokio::test]
async fn services_beside_the_queue_are_decided_too() {
    let cast = Cast::new();
    let guarded = Guarded::start(&file(&cast.tokens)).await;
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
    let guarded = Guarded::start(&file(&cast.tokens)).await;
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
