//! Every call that reflection tells of, every page, form and followed page, for every kind of credential, in
//! every kind of namespace: what each is answered follows from the rule below, and nothing else is.
//!
//! `table.rs` has what each of them needs. The rule is written here once more, in other words than those of
//! the program, so that a change of the program's own is noticed.

use std::time::Duration;

use forebay_access::{Record, Scope};
use forebay_types::Timestamp;
use futures_util::{StreamExt as _, stream};
use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use serde_json::json;
use tonic::transport::Channel;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use super::{
    GuardedNode, OWN, bearer, file, record,
    table::{CALLS, Needs, ROUTES, SENT},
    token,
};
use crate::wire::http1::Request;

/// Namespaces: the own one, one that begins alike, a foreign one, what stands for several or for all, none.
const NAMESPACES: &[&str] = &[OWN, "own-a", "other", "own-*", "-", ""];
/// As many requests at a time.
const AT_ONCE: usize = 16;
/// Times that one is asked which is told to come again.
const TRIES_MAX: usize = 50;

/// Whose requests they are.
struct Who {
    /// For people who read what is wrong.
    name: String,
    /// Credentials that are shown. Empty: none.
    shown: Vec<String>,
    /// Its rights. `None`: it is not valid.
    grants: Option<Vec<(&'static str, Vec<Scope>)>>,
}

/// Each kind of credential, and the file of tokens.
fn everybody() -> (Vec<Who>, String) {
    let all = Scope::ALL.to_vec();
    let mut valid = vec![
        ("all in own".to_owned(), vec![(OWN, all.clone())]),
        ("all in other".to_owned(), vec![("other", all.clone())]),
        ("all in own-*".to_owned(), vec![("own-*", all.clone())]),
        ("all in own and own-*".to_owned(), vec![(OWN, all.clone()), ("own-*", all.clone())]),
        ("all in *".to_owned(), vec![("*", all.clone())]),
        ("nothing".to_owned(), vec![]),
    ];
    for scope in Scope::ALL {
        valid.push((format!("{} in own", scope.as_str()), vec![(OWN, vec![scope])]));
        valid.push((format!("{} in *", scope.as_str()), vec![("*", vec![scope])]));
        let others: Vec<Scope> = all.iter().copied().filter(|it| *it != scope).collect();
        valid.push((format!("all but {} in *", scope.as_str()), vec![("*", others.clone())]));
        valid.push((format!("all but {} in own", scope.as_str()), vec![(OWN, others)]));
    }
    let (mut who, mut records) = (Vec::new(), Vec::new());
    for (seed, (name, grants)) in (50_u8..).zip(valid) {
        let texts = grants.iter().map(|(namespaces, scopes)| {
            let scopes = scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(",");
            format!("{namespaces}:{scopes}")
        });
        let texts: Vec<String> = texts.collect();
        records.push(record(&token(seed), &texts.iter().map(String::as_str).collect::<Vec<_>>()));
        who.push(Who { name, shown: vec![bearer(&token(seed))], grants: Some(grants) });
    }
    let [ended, revoked, unknown] = [1, 2, 3].map(token);
    records.push(Record { ends: Some(Timestamp::from_micros(1)), ..record(&ended, &["*:all"]) });
    records.push(Record { revoked: true, ..record(&revoked, &["*:all"]) });
    for (name, shown) in [
        ("nobody", vec![]),
        ("a text", vec!["Bearer x".to_owned()]),
        ("another scheme", vec!["Basic YTpi".to_owned()]),
        ("ended", vec![bearer(&ended)]),
        ("revoked", vec![bearer(&revoked)]),
        ("unknown", vec![bearer(&unknown)]),
    ] {
        who.push(Who { name: name.to_owned(), shown, grants: None });
    }
    (who, file(&records))
}

/// Whether rights in these namespaces are rights in that one. None, and what stands for all, is in all alone.
fn lies_in(namespaces: &str, namespace: &str) -> bool {
    match namespaces.strip_suffix('*') {
        Some("") => true,
        _ if namespace.is_empty() || namespace == "-" => false,
        Some(beginning) => namespace.starts_with(beginning),
        None => namespaces == namespace,
    }
}

/// Returns the answers that must come, as far as rights go. Empty: it is let through, whatever comes then.
fn rule(who: &Who, needs: Needs, namespace: &str) -> Vec<String> {
    let Some(grants) = &who.grants else {
        let refused = if who.shown.is_empty() { "NO_CREDENTIALS" } else { "BAD_CREDENTIALS" };
        return vec![if needs == Needs::Nothing { String::new() } else { refused.to_owned() }];
    };
    let has = |right: &str, namespace: &str| {
        grants.iter().any(|(names, scopes)| {
            lies_in(names, namespace) && scopes.iter().any(|scope| scope.as_str() == right)
        })
    };
    let knows = |namespace: &str| grants.iter().any(|(names, _)| lies_in(names, namespace));
    match needs {
        Needs::Nothing | Needs::Any => vec![String::new()],
        Needs::All(right) if has(right, "") => vec![String::new()],
        Needs::All(right) => vec![format!("SCOPE_MISSING {right}")],
        Needs::Own(right) if has(right, namespace) => vec![String::new()],
        Needs::Own(right) if knows(namespace) => vec![format!("SCOPE_MISSING {right}")],
        // Calls that may be about all of them say which right is missing there.
        Needs::Own(right) if namespace == "-" => {
            vec!["WRONG_NAMESPACE".to_owned(), format!("SCOPE_MISSING {right}")]
        }
        Needs::Own(_) => vec!["WRONG_NAMESPACE".to_owned()],
    }
}

/// The calls that the node itself tells of, by path, and whether their messages have the field `namespace`.
async fn reflected(channel: Channel, shown: &str) -> Vec<(String, bool)> {
    let mut client = ServerReflectionClient::new(channel);
    let mut ask = async |question| {
        let question = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
        let mut request = tonic::Request::new(stream::iter([question]));
        request.metadata_mut().insert("authorization", shown.parse().unwrap());
        let mut answers = client.server_reflection_info(request).await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap().message_response.unwrap()
    };
    let services = ask(MessageRequest::ListServices(String::new())).await;
    let MessageResponse::ListServicesResponse(services) = services else { panic!("{services:?}") };
    let mut calls = Vec::new();
    for service in services.service.iter().filter(|it| it.name.starts_with("forebay.")) {
        let mut set = FileDescriptorSet::default();
        let mut wanted = vec![MessageRequest::FileContainingSymbol(service.name.clone())];
        while let Some(question) = wanted.pop() {
            let MessageResponse::FileDescriptorResponse(files) = ask(question).await else { panic!() };
            for bytes in files.file_descriptor_proto {
                let file = FileDescriptorProto::decode(&bytes[..]).unwrap();
                if !set.file.iter().any(|known| known.name == file.name) {
                    let needed = file.dependency.iter().cloned();
                    wanted.extend(needed.map(MessageRequest::FileByFilename));
                    set.file.push(file);
                }
            }
        }
        // Files that a file needs come before it.
        set.file.reverse();
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_set(set).unwrap();
        for method in pool.get_service_by_name(&service.name).unwrap().methods() {
            let is_named = method.input().get_field_by_name("namespace").is_some();
            calls.push((format!("{}/{}", service.name, method.name()), is_named));
        }
    }
    calls
}

/// Cells that were other than the rule says.
async fn wrong<F: Future<Output = Option<String>>>(cells: impl Iterator<Item = F>) -> (usize, Vec<String>) {
    let seen: Vec<_> = stream::iter(cells).buffer_unordered(AT_ONCE).collect().await;
    (seen.len(), seen.into_iter().flatten().collect())
}

#[tokio::test]
async fn every_call_and_page_is_decided_for_every_credential_in_every_namespace() {
    let (everybody, tokens) = everybody();
    let guarded = GuardedNode::start(&tokens).await;
    let operator = everybody.iter().find(|who| who.name == "all in *").unwrap();
    let calls = reflected(guarded.node.channel(), &operator.shown[0]).await;
    assert!(calls.len() >= CALLS.len(), "{calls:?}");

    let channels: Vec<Channel> = (0..4).map(|_| guarded.node.channel()).collect();
    let mut cells = Vec::new();
    for (number, (name, is_named)) in calls.iter().enumerate() {
        let needs = CALLS.iter().find(|row| row.0 == name).unwrap_or_else(|| panic!("{name} has no row")).1;
        let namespaces = if *is_named { NAMESPACES } else { &NAMESPACES[..1] };
        for who in &everybody {
            for namespace in namespaces {
                // A caller that is not known is told so, whatever it asks for.
                if who.grants.is_some() || *namespace == OWN {
                    let json = [OWN, "other", "-"].contains(namespace);
                    cells.push((number, name, needs, who, *namespace, *is_named, json));
                }
            }
        }
    }
    let cell = async |(number, name, needs, who, namespace, is_named, json): (
        usize,
        &String,
        Needs,
        &Who,
        &str,
        bool,
        bool,
    )| {
        let path = format!("/{name}");
        let shown: Vec<&str> = who.shown.iter().map(String::as_str).collect();
        let (named, message) = match is_named {
            true => (namespace, json!({"namespace": namespace})),
            false => ("", json!({})),
        };
        let channel = channels[number % channels.len()].clone();
        let mut told = vec![("gRPC", guarded.grpc(channel, &path, named, &shown).await)];
        if json {
            told.push(("JSON", guarded.json(&path, &message, &shown).await));
        }
        let expected = rule(who, needs, named);
        let other = told.into_iter().find(|(_, told)| !expected.contains(&told.short()));
        other.map(|(by, told)| format!("{by} {name} in {namespace:?} by {}: {:?}", who.name, told.short()))
    };
    let (seen, others) = wrong(cells.into_iter().map(cell)).await;
    assert!(others.is_empty(), "{} of {seen} cells: {others:#?}", others.len());
    assert!(seen > 5_000, "{seen}");

    let (seen, others) =
        wrong(pages(&everybody).into_iter().map(async |page| page.is_wrong(&guarded).await)).await;
    assert!(others.is_empty(), "{} of {seen} cells: {others:#?}", others.len());
    assert!(seen > 2_000, "{seen}");
}

/// A page, or what follows it, that somebody asks for.
struct GridRequest<'a> {
    /// With its query.
    target: String,
    /// Its needs.
    needs: Needs,
    /// Where.
    namespace: &'a str,
    /// It is a form that is sent.
    is_form: bool,
    /// The caller.
    who: &'a Who,
}

fn pages(everybody: &[Who]) -> Vec<GridRequest<'_>> {
    let mut asked = Vec::new();
    let mut add = |target: String, needs, is_form, namespace| {
        let all = everybody.iter().filter(|who| who.grants.is_some() || namespace == OWN);
        asked.extend(all.map(|who| GridRequest { target: target.clone(), needs, namespace, is_form, who }));
    };
    for namespace in [OWN, "other", "-"] {
        for route in ROUTES.iter().filter(|route| route.at.0 != "/events") {
            let (path, query) = route.at;
            let needs = route.needs;
            let query = query.replace(&format!("ns={OWN}"), &format!("ns={namespace}"));
            if namespace == OWN || query.contains("ns=") {
                add(format!("{path}{query}"), needs, false, namespace);
            }
            // To follow a page takes what the page takes, and a credential at least.
            let name = if path == "/" { "overview" } else { path.trim_start_matches('/') };
            let needs = match needs {
                needs if route.people && needs != Needs::Nothing => needs,
                _ => Needs::Any,
            };
            add(format!("/events?page={name}&{}", query.trim_start_matches('?')), needs, false, namespace);
        }
        for (path, needs) in SENT.iter().filter(|(_, needs)| *needs != Needs::Nothing) {
            add(format!("{path}?ns={namespace}"), *needs, true, namespace);
        }
    }
    asked
}

impl GridRequest<'_> {
    /// Tells the mistake in the answer, if there is one.
    async fn is_wrong(&self, guarded: &GuardedNode) -> Option<String> {
        let Self { target, needs, namespace, is_form, who } = self;
        // An answer that lasts would be waited for.
        let mut request = Request::get(target).by(if target.starts_with("/events") { "HEAD" } else { "GET" });
        if *is_form {
            // Without the signature of a page. So nobody changes anything; whoever is not known hears that
            // first.
            request = Request::post(target, "application/x-www-form-urlencoded", format!("ns={namespace}"))
                .with("Sec-Fetch-Site", "same-origin");
        }
        for shown in &who.shown {
            request = request.with("Authorization", shown);
        }
        // Lists take turns, so that one of many at once may be told to come again.
        let mut status = request.send(&guarded.node.http).await.status;
        for _ in 0..TRIES_MAX {
            if status != 429 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            status = request.send(&guarded.node.http).await.status;
        }
        let refused = !rule(who, *needs, namespace).contains(&String::new());
        let expected: &[u16] = match (refused, who.grants.is_some()) {
            // People are led to the login.
            (true, false) => &[401, 303],
            (true, true) => &[403],
            (false, _) if *is_form => &[403],
            (false, _) => &[200, 400, 404, 503],
        };
        let is_right = expected.contains(&status);
        (!is_right).then(|| format!("{target} by {}: {status}, not {expected:?}", who.name))
    }
}
