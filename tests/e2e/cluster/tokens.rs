//! Tokens of the catalog: what is made or revoked at one node holds at all.

use std::{fs, process::Command, time::Duration};

use forebay_access::{RANDOM_BYTES, Token};
use forebay_proto::v1::{
    CreateTokenRequest, Grant, ListAuditRecordsRequest, ListTokensRequest, RevokeTokenRequest,
    RotateTokenRequest, WhoAmIRequest, admin_service_client::AdminServiceClient,
};
use forebay_testkit::{program, proxy::Ways, servers::Kind};
use tokio::time::{Instant, sleep};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::Channel,
};
use tonic_types::StatusExt as _;

use super::nodes::Nodes;
use crate::{
    node::Node,
    wire::browser::{Browser, signature},
};

/// Time limit for effects that are promised within two seconds, on a machine that does much else.
const SOON: Duration = Duration::from_secs(5);
/// A namespace.
pub const OWN: &str = "own";

/// Shows a token.
#[derive(Clone)]
pub struct Shows(MetadataValue<Ascii>);

impl Interceptor for Shows {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

impl Shows {
    /// This one.
    pub fn of(token: &str) -> Self {
        Self(format!("Bearer {token}").parse().unwrap())
    }
}

/// Calls with a token.
pub fn admin(node: &Node, token: &str) -> AdminServiceClient<InterceptedService<Channel, Shows>> {
    AdminServiceClient::with_interceptor(node.channel(), Shows::of(token))
}

/// The reason of a refusal.
pub fn reason<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let status = answer.unwrap_err();
    status.get_details_error_info().map(|info| info.reason).unwrap_or_else(|| panic!("{status}"))
}

async fn who(node: &Node, token: &str) -> Result<String, String> {
    let answer = admin(node, token).who_am_i(WhoAmIRequest {}).await;
    answer.map(|it| it.into_inner().name).map_err(|status| reason::<()>(Err(status)))
}

/// Waits until a node says this of a token.
pub async fn says(node: &Node, token: &str, expected: Result<&str, &str>) {
    let begun = Instant::now();
    loop {
        let said = who(node, token).await;
        if said.as_deref().map_err(String::as_str) == expected {
            return;
        }
        assert!(begun.elapsed() < SOON, "{said:?} instead of {expected:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// A token that is to be made.
pub fn new(namespace: &str, name: &str, grants: &[(&str, &[&str])]) -> CreateTokenRequest {
    let grant = |(namespaces, scopes): &(&str, &[&str])| Grant {
        namespaces: (*namespaces).to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let grants = grants.iter().map(grant).collect();
    CreateTokenRequest { namespace, name, grants, reason: "a test".to_owned(), ..Default::default() }
}

/// Makes a token. Returns its id and its text.
async fn make(node: &Node, token: &str, request: CreateTokenRequest) -> Result<(String, String), Status> {
    let made = admin(node, token).create_token(request).await?.into_inner();
    Ok((made.token.unwrap().id, made.secret))
}

async fn listed(node: &Node, token: &str, namespace: &str) -> Result<Vec<String>, Status> {
    let request = ListTokensRequest { namespace: namespace.to_owned(), ..Default::default() };
    let page = admin(node, token).list_tokens(request).await?.into_inner();
    Ok(page.tokens.into_iter().map(|token| token.name).collect())
}

fn revoke(namespace: &str, id: &str) -> RevokeTokenRequest {
    let (namespace, token_id) = (namespace.to_owned(), id.to_owned());
    RevokeTokenRequest { namespace, token_id, ..Default::default() }
}

/// Runs `forebay` and returns its exit status and what it printed.
async fn run(arguments: &[&str], shown: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(program());
    command.args(arguments).env("FOREBAY_TOKEN", shown).env("XDG_CONFIG_HOME", "/nonexistent");
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout).trim().to_owned(), text(output.stderr))
}

/// A cluster whose nodes accept tokens of the catalog, and its first token.
pub async fn guarded(cluster: &Nodes) -> String {
    cluster.configure("\n[access]\ncatalog_tokens = true\n");
    let create = ["token", "create", "--name", "first", "--bootstrap", "--config", &cluster.config(0)];
    let (code, token, said) = run(&create, "").await;
    assert!(code == Some(0) && Token::parse(&token).is_some(), "{said}");
    token
}

/// Starts a node, and waits until it is ready.
pub async fn start(cluster: &Nodes, node: usize) -> Node {
    let node = cluster.start(node).await;
    node.wait_for_readyz(200).await;
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_holds_at_all_nodes_until_it_is_revoked() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 2).await;
    let first = guarded(&cluster).await;
    // The second one gets its shards much later, and needs none here.
    let (here, there) = (start(&cluster, 0).await, cluster.start(1).await);
    assert_eq!(who(&here, &first).await.as_deref(), Ok("first"));
    assert_eq!(reason(admin(&here, "nonsense").who_am_i(WhoAmIRequest {}).await), "BAD_CREDENTIALS");

    let request = new(OWN, "tenant", &[(OWN, &["admin", "operate", "produce"])]);
    let (id, tenant) = make(&here, &first, request).await.unwrap();
    assert_eq!(who(&here, &tenant).await.as_deref(), Ok("tenant"), "it is answered once it is in use");
    says(&there, &tenant, Ok("tenant")).await;

    // While the catalog is silent what is known holds.
    way.stall(Ways::Both);
    let silent = make(&there, &first, new("-", "late", &[("*", &["observe"])])).await;
    assert_eq!(reason(silent), "CATALOG_UNAVAILABLE");
    assert_eq!(who(&there, &tenant).await.as_deref(), Ok("tenant"));
    way.pass();
    way.reset();
    let begun = Instant::now();
    while admin(&here, &first).revoke_token(revoke("-", &id)).await.is_err() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the catalog is back");
    }
    assert_eq!(who(&here, &tenant).await, Err("BAD_CREDENTIALS".to_owned()));
    says(&there, &tenant, Err("BAD_CREDENTIALS")).await;
    let last = Token::parse(&first).unwrap().id().to_string();
    assert_eq!(reason(admin(&here, &first).revoke_token(revoke("-", &last)).await), "LAST_ADMIN");

    let second = new("-", "second", &[("*", &["admin", "observe"])]);
    let (_, second) = make(&there, &first, second).await.unwrap();
    admin(&there, &second).revoke_token(revoke("-", &last)).await.unwrap();
    says(&here, &first, Err("BAD_CREDENTIALS")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_gives_what_it_has_and_sees_its_own() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let first = guarded(&cluster).await;
    let node = start(&cluster, 0).await;
    let request = new(OWN, "tenant", &[(OWN, &["admin", "produce"])]);
    let (_, tenant) = make(&node, &first, request).await.unwrap();
    let other = new("own-*", "other", &[("own-*", &["admin", "observe"])]);
    let (other, _) = make(&node, &first, other).await.unwrap();

    let (_, given) = make(&node, &tenant, new(OWN, "given", &[(OWN, &["produce"])])).await.unwrap();
    assert_eq!(who(&node, &given).await.as_deref(), Ok("given"));
    for (request, expected) in [
        (new(OWN, "n", &[(OWN, &["consume"])]), "SCOPE_MISSING"),
        (new(OWN, "n", &[("other", &["produce"])]), "INVALID_FIELD"),
        (new(OWN, "n", &[("own*", &["produce"])]), "INVALID_FIELD"),
        (new(OWN, "n", &[]), "INVALID_FIELD"),
        (new(OWN, "", &[(OWN, &["produce"])]), "INVALID_FIELD"),
        (new("other", "n", &[("other", &["produce"])]), "WRONG_NAMESPACE"),
        (new("own*", "n", &[(OWN, &["produce"])]), "WRONG_NAMESPACE"),
        (new("-", "n", &[(OWN, &["produce"])]), "SCOPE_MISSING"),
    ] {
        assert_eq!(reason(make(&node, &tenant, request.clone()).await), expected, "{request:?}");
    }
    assert_eq!(reason(make(&node, &given, new(OWN, "n", &[(OWN, &["produce"])])).await), "SCOPE_MISSING");

    let mut own = listed(&node, &tenant, OWN).await.unwrap();
    own.sort_unstable();
    assert_eq!(own, ["given", "tenant"]);
    assert_eq!(reason(listed(&node, &tenant, "-").await), "SCOPE_MISSING");
    assert_eq!(reason(listed(&node, &tenant, "own-a").await), "WRONG_NAMESPACE");
    assert_eq!(listed(&node, &first, "-").await.unwrap().len(), 4);
    let foreign = RotateTokenRequest { namespace: OWN.into(), token_id: other.clone(), ..Default::default() };
    assert_eq!(reason(admin(&node, &tenant).rotate_token(foreign).await), "TOKEN_NOT_FOUND");
    assert_eq!(reason(admin(&node, &tenant).revoke_token(revoke(OWN, &other)).await), "TOKEN_NOT_FOUND");
    let unknown = revoke(OWN, "000000000000");
    assert_eq!(reason(admin(&node, &tenant).revoke_token(unknown).await), "TOKEN_NOT_FOUND");

    // Records say which token was made, and not its secret. A tenant sees its own.
    let records = async |token: &str, namespace: &str| {
        let request = ListAuditRecordsRequest { namespace: namespace.to_owned(), ..Default::default() };
        admin(&node, token).list_audit_records(request).await.map(|page| page.into_inner().records)
    };
    let own = records(&tenant, OWN).await.unwrap();
    assert!(own.len() > 5 && own.iter().all(|record| record.namespace == OWN), "{own:?}");
    let ids = [&tenant, &given].map(|token| Token::parse(token).unwrap().id().to_string());
    assert!(ids.iter().all(|id| own.iter().any(|record| record.target == *id)), "{own:?}");
    assert_eq!(reason(records(&tenant, "-").await), "SCOPE_MISSING");
    assert_eq!(reason(records(&tenant, "own-a").await), "WRONG_NAMESPACE");
    let all = records(&first, "-").await.unwrap();
    assert!(all.iter().any(|it| it.principal == "operator" && it.method == "CreateToken"), "{all:?}");
    let shown = format!("{all:?}");
    for secret in [&first, &tenant, &given] {
        assert!(!shown.contains(&secret[20..60]), "the records have a secret");
    }
    let log = fs::read_to_string(cluster.log(0)).unwrap();
    assert!(log.contains("CreateToken own/") && !log.contains(&given[20..60]), "{log}");
}

/// Its secret is told once, so that nobody gets a second token by mistake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_calls_with_one_id_one_makes_a_token() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let first = guarded(&cluster).await;
    let (here, there) = (start(&cluster, 0).await, cluster.start(1).await);
    says(&there, &first, Ok("first")).await;
    let with_id = |name: &str, id: &str| CreateTokenRequest {
        request_id: id.to_owned(),
        ..new(OWN, name, &[(OWN, &["observe"])])
    };
    let (id, _) = make(&here, &first, with_id("one", "1")).await.unwrap();
    assert_eq!(reason(make(&there, &first, with_id("one", "1")).await), "REQUEST_ID_REUSED");
    assert_eq!(reason(make(&there, &first, with_id("other", "1")).await), "REQUEST_ID_REUSED");
    let rotate = RotateTokenRequest {
        namespace: OWN.into(),
        token_id: id,
        request_id: "2".into(),
        ..Default::default()
    };
    admin(&there, &first).rotate_token(rotate.clone()).await.unwrap();
    for node in [&here, &there] {
        assert_eq!(reason(admin(node, &first).rotate_token(rotate.clone()).await), "REQUEST_ID_REUSED");
    }
    // Whoever has lost the answer rotates it again.
    let again = RotateTokenRequest { request_id: "2b".into(), ..rotate.clone() };
    let told = admin(&here, &first).rotate_token(again.clone()).await.unwrap().into_inner();
    says(&here, &told.secret, Ok("one")).await;
    assert_eq!(reason(admin(&there, &first).rotate_token(again).await), "REQUEST_ID_REUSED");
    says(&there, &told.secret, Ok("one")).await;
    let long = RotateTokenRequest { request_id: "i".repeat(201), ..rotate.clone() };
    assert_eq!(reason(admin(&here, &first).rotate_token(long).await), "TOO_LARGE");
    for node in [&here, &there] {
        admin(node, &first).revoke_token(revoke(OWN, &rotate.token_id)).await.unwrap();
    }

    let (one, other) =
        tokio::join!(make(&here, &first, with_id("two", "3")), make(&there, &first, with_id("two", "3")));
    let (made, refused) = if one.is_ok() { (one, other) } else { (other, one) };
    assert_eq!((made.is_ok(), reason(refused)), (true, "REQUEST_ID_REUSED".to_owned()));
    let mut own = listed(&here, &first, OWN).await.unwrap();
    own.sort_unstable();
    assert_eq!(own, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_makes_lists_rotates_and_revokes_tokens() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let first = guarded(&cluster).await;
    let node = start(&cluster, 0).await;
    let on = async |verb: &[&str], shown: &str| {
        let addr = ["--addr", &*node.grpc];
        run(&[verb, &addr[..]].concat(), shown).await
    };
    let grant = format!("{OWN}:produce");
    let create = ["token", "create", "--name", "mailer", "--grant", &grant, "--ends", "30d"];
    let (code, old, said) = on(&create, &first).await;
    assert!(code == Some(0) && said.contains("is in the catalog"), "{said}");
    assert_eq!(on(&["whoami"], &old).await.0, Some(0));
    let id = Token::parse(&old).unwrap().id().to_string();

    let rotate = ["token", "rotate", &id, "--namespace", OWN, "--overlap"];
    let (code, new, said) = on(&[&rotate[..], &["1h"]].concat(), &first).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(old != new && who(&node, &old).await.is_ok() && who(&node, &new).await.is_ok());
    let (code, _, said) = on(&[&rotate[..], &["1h"]].concat(), &first).await;
    assert!(code == Some(1) && said.contains("overlap"), "{said}");
    let (code, newest, _) = on(&[&rotate[..], &["0s"]].concat(), &first).await;
    assert_eq!(code, Some(0));
    assert!(who(&node, &old).await.is_err() && who(&node, &new).await.is_err());
    assert!(who(&node, &newest).await.is_ok());

    // The last use is noted in the catalog soon.
    let begun = Instant::now();
    loop {
        let (code, out, said) = on(&["token", "list", "--namespace", "-", "-o", "json"], &first).await;
        assert_eq!(code, Some(0), "{said}");
        let tokens: serde_json::Value = serde_json::from_str(&out).unwrap();
        let tokens = tokens["tokens"].as_array().unwrap();
        assert_eq!(tokens.len(), 2, "{out}");
        if tokens.iter().all(|token| token["lastUsedAt"].is_string()) {
            break;
        }
        assert!(begun.elapsed() < SOON * 3, "{out}");
        sleep(Duration::from_millis(100)).await;
    }
    let (code, table, _) = on(&["token", "list", "--namespace", OWN], &first).await;
    assert!(code == Some(0) && table.contains("mailer") && !table.contains("first"), "{table}");
    let (code, out, _) = on(&["token", "revoke", &id, "--namespace", OWN], &first).await;
    assert_eq!((code, out), (Some(0), format!("token {id} is revoked")));
    assert_eq!(who(&node, &newest).await, Err("BAD_CREDENTIALS".to_owned()));
    let (code, _, said) = on(&["token", "revoke", "000000000000", "--namespace", OWN], &first).await;
    assert!(code == Some(3) && said.contains("TOKEN_NOT_FOUND"), "{said}");
}

/// Only while no other token may do everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_token_comes_from_a_file() {
    let cluster = Nodes::new(Kind::MariaDb, 1, 1).await;
    let folder = tempfile::Builder::new().prefix("forebay-tokens-").tempdir().unwrap();
    let path = folder.path().join("first.token");
    let [one, two] = [1, 2].map(|seed| Token::of_random(&[seed; RANDOM_BYTES]).reveal());
    cluster.configure(&format!(
        "\n[access]\ncatalog_tokens = true\nbootstrap_token_file = \"{}\"\n",
        path.display()
    ));
    fs::write(&path, format!("{one}\n")).unwrap();
    let node = start(&cluster, 0).await;
    says(&node, &one, Ok("bootstrap")).await;
    assert!(node.terminate().await.0.success());
    fs::write(&path, format!("{two}\n")).unwrap();
    let node = start(&cluster, 0).await;
    assert_eq!(who(&node, &one).await.as_deref(), Ok("bootstrap"));
    assert_eq!(who(&node, &two).await, Err("BAD_CREDENTIALS".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_holds_at_all_nodes_until_it_ends() {
    let (cluster, way) = Nodes::with_way_to_catalog(Kind::MariaDb, 2, 2).await;
    let first = guarded(&cluster).await;
    let (here, there) = (start(&cluster, 0).await, cluster.start(1).await);
    // As behind a balancer, where both have one port: the names of cookies have it.
    let port = |node: &Node| node.http.rsplit_once(':').unwrap().1.to_owned();
    let at = |browser: &Browser, node: &Node| {
        let rename = |(name, value): (&String, &String)| {
            let end = if name.ends_with("_login") { "_login" } else { "" };
            (format!("forebay_{}{end}", port(node)), value.clone())
        };
        Browser { cookies: browser.cookies.iter().map(rename).collect() }
    };

    // The form is of one node, the login at the other, and the page at the first again.
    let mut browser = Browser::default();
    let form = signature(&browser.get(&here, "/login").await, "login");
    let mut browser = at(&browser, &there);
    let answer = browser.post(&there, "/login", &[("form", &form), ("token", &first)]).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let mut browser = at(&browser, &here);
    let page = browser.get(&here, "/").await;
    assert!(page.status == 200 && page.text().contains("logged in as first"), "{page:?}");

    // While the catalog is silent, who is logged in stays so, and nobody else logs in.
    way.stall(Ways::Both);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(browser.get(&here, "/").await.status, 200);
    let mut late = Browser::default();
    let answer = late.log_in(&here, &first).await;
    assert!(answer.status == 503 && late.session().is_none(), "{answer:?}");
    way.pass();
    assert_eq!(browser.get(&here, "/").await.status, 200);

    // A logout at one node ends it at the other, within a second.
    let mut elsewhere = at(&browser, &there);
    assert_eq!(elsewhere.get(&there, "/").await.status, 200);
    let out = signature(&page, "logout");
    assert_eq!(elsewhere.post(&there, "/logout", &[("form", &out)]).await.status, 303);
    browser.until_logged_out(&here, SOON).await;

    // So does the end of its token, wherever that is revoked. A node that starts later knows it too.
    let request = new("-", "ops", &[("*", &["observe"])]);
    let (id, ops) = make(&here, &first, request).await.unwrap();
    let mut browser = Browser::default();
    assert_eq!(browser.log_in(&here, &ops).await.status, 303);
    here.terminate().await;
    let here = cluster.start(0).await;
    assert_eq!(browser.get(&here, "/").await.status, 200);
    admin(&there, &first).revoke_token(revoke("-", &id)).await.unwrap();
    browser.until_logged_out(&here, SOON).await;
}
