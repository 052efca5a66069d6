//! Login, sessions, and the forms of pages.

use std::time::Duration;

use forebay_access::{Record, SECRET_BYTES, Token};
use forebay_types::{Clock as _, SystemClock, Timestamp};
use tokio::time::Instant;

use super::{GuardedNode, bearer, file, record, token};
use crate::{
    node::Node,
    wire::{
        browser::{Browser, form, signature},
        http1::{Answer, Request},
    },
};

/// Time limit for effects that are promised within two seconds, on a machine that does much else.
const SOON: Duration = Duration::from_secs(20);

/// The time by the clock that the node has, too.
fn wall() -> Timestamp {
    SystemClock::default().wall()
}

/// The second of a time: files of tokens have no parts of one.
fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros() / 1_000_000 * 1_000_000)
}

/// Where an answer leads.
#[track_caller]
fn leads_to(answer: &Answer) -> &str {
    assert_eq!(answer.status, 303, "{answer:?}");
    answer.header("location")
}

#[tokio::test]
async fn a_login_opens_the_pages_and_a_logout_closes_them() {
    let (admin, tenant) = (token(1), token(2));
    let guarded =
        GuardedNode::start(&file(&[record(&admin, &["*:all"]), record(&tenant, &["own:produce"])])).await;
    let node = &guarded.node;
    let mut browser = Browser::default();
    assert_eq!(leads_to(&browser.get(node, "/?done=resumed").await), "login?next=%3Fdone%3Dresumed");
    let page = browser.get(node, "/login?next=%3Fdone%3Dresumed").await;
    let text = page.text();
    assert!(page.status == 200 && text.contains("autocomplete=\"current-password\""), "{text}");
    assert!(text.contains("name=\"next\" value=\"?done=resumed\"") && !text.contains("<script"), "{text}");
    let style = text.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let style = browser.get(node, &format!("/{style}")).await;
    assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
    assert!(style.header("cache-control").ends_with("immutable"), "{style:?}");
    assert_eq!(browser.get(node, "/assets/app.css?v=1").await.header("cache-control"), "no-store");

    let fields =
        [("form", &*signature(&page, "login")), ("token", &*admin.reveal()), ("next", "?done=resumed")];
    let answer = browser.post(node, "/login", &fields).await;
    assert_eq!(leads_to(&answer), "./?done=resumed");
    let port = node.http.rsplit_once(':').unwrap().1;
    let cookie = &answer.cookies[0];
    assert!(cookie.starts_with(&format!("forebay_{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    assert_eq!(browser.cookies.len(), 1, "the cookie of the login is gone");
    let page = browser.get(node, "/?done=resumed").await;
    assert!(page.status == 200 && page.text().contains("logged in as a "), "{page:?}");
    let refused = browser.get(node, "/topics?nss=own").await;
    assert!(refused.status == 400 && refused.text().contains("did you mean ns?"), "{refused:?}");
    assert_eq!(leads_to(&browser.get(node, "/login?next=%3Fx").await), "./?x", "it is done already");
    // The session is for pages alone.
    let (name, value) = browser.session().unwrap();
    let call = Request::call("/forebay.v1.AdminService/WhoAmI", &serde_json::json!({}));
    assert_eq!(browser.send(node, call.with("Sec-Fetch-Site", "same-origin")).await.status, 401);

    let mut copy = browser.clone();
    let answer = browser.post(node, "/logout", &[("form", &signature(&page, "logout"))]).await;
    assert_eq!(leads_to(&answer), "login");
    assert_eq!(answer.header("clear-site-data"), "\"cache\", \"storage\"");
    assert_eq!(browser.session(), None);
    assert_eq!(
        leads_to(&copy.get(node, "/").await),
        "login",
        "the session is over for whoever has its cookie"
    );
    assert_eq!(copy.session(), Some((name, value)));

    // Somebody else logs in there, with too few rights.
    assert_eq!(leads_to(&browser.log_in(node, &tenant.reveal()).await), "./");
    let page = browser.get(node, "/shards").await;
    let text = page.text();
    assert!(page.status == 403 && text.contains("do not have the right observe"), "{text}");
    assert!(page.header("content-type").starts_with("text/html"), "{page:?}");
    let log = std::fs::read_to_string(guarded.folder.path().join("log")).unwrap();
    assert!(log.contains(&format!("logged in with token {}", admin.id())), "{log}");
    for act in ["Login", "Logout"] {
        let line = log.lines().find(|line| line.contains(&format!(" {act} /: done")));
        let line = line.unwrap_or_else(|| panic!("{act} is not written down: {log}"));
        assert!(line.contains("audit") && line.contains(admin.id().as_str()), "{line}");
    }
    assert!(!log.contains(&admin.reveal()[18..]), "the log has the secret");
}

#[tokio::test]
async fn every_page_has_the_headers_that_protect_it() {
    let admin = token(1);
    let guarded = GuardedNode::start(&file(&[record(&admin, &["*:all"])])).await;
    let mut browser = Browser::default();
    let mut answers = vec![browser.get(&guarded.node, "/").await, browser.get(&guarded.node, "/login").await];
    answers.push(browser.log_in(&guarded.node, "x").await);
    answers.push(browser.post(&guarded.node, "/logout", &[]).await);
    answers.push(browser.log_in(&guarded.node, &admin.reveal()).await);
    for target in ["/", "/metrics", "/status.json", "/healthz", "/assets/app.css", "/nothing"] {
        answers.push(browser.get(&guarded.node, target).await);
    }
    assert_eq!(
        answers.iter().map(|answer| answer.status).collect::<Vec<_>>(),
        [303, 200, 401, 403, 303, 200, 200, 200, 200, 200, 404]
    );
    for answer in answers {
        let policy = answer.header("content-security-policy");
        for part in ["default-src 'none'; ", "frame-ancestors 'none'; ", "require-trusted-types-for 'script'"]
        {
            assert!(policy.contains(part), "{answer:?}");
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("strict-transport-security", ""),
        ] {
            assert_eq!(answer.header(name), value, "{name} {answer:?}");
        }
        // Nothing that the policy forbids.
        let text = answer.text();
        assert!(!text.contains("<style") && !text.contains("style="), "{text}");
        let own = text.matches("<script src=\"assets/").count();
        assert_eq!(text.matches("<script").count(), own, "{text}");
    }
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let (admin, worker) = (token(1), token(2));
    let kept = [record(&admin, &["*:all"]), record(&worker, &["*:observe"])];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let enter = async |token: &Token| {
        let mut browser = Browser::default();
        let begun = Instant::now();
        while browser.log_in(&guarded.node, &token.reveal()).await.status != 303 {
            assert!(begun.elapsed() < SOON, "the token is never accepted");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert_eq!(browser.get(&guarded.node, "/").await.status, 200);
        browser
    };
    let change = |worker: &Record| guarded.replace_tokens(&file(&[kept[0].clone(), worker.clone()]));

    let mut browser = enter(&worker).await;
    change(&Record { revoked: true, ..kept[1].clone() });
    browser.until_logged_out(&guarded.node, SOON).await;

    change(&kept[1]);
    let mut browser = enter(&worker).await;
    let ends = whole_second(wall().plus(Duration::from_secs(4)));
    change(&Record { ends: Some(ends), ..kept[1].clone() });
    browser.until_logged_out(&guarded.node, SOON).await;
    assert!(wall() >= ends, "the session has ended before its token");

    // Rotated: the one with the older secret ends with the overlap, the one with the newer one goes on.
    change(&kept[1]);
    let mut older = enter(&worker).await;
    let newer = Token::with_secret(worker.id().clone(), &[9; SECRET_BYTES]);
    let overlap_ends = whole_second(wall().plus(Duration::from_secs(5)));
    change(&Record {
        hashes: vec![worker.hash(), newer.hash()],
        overlap_ends: Some(overlap_ends),
        ..kept[1].clone()
    });
    let mut browser = enter(&newer).await;
    older.until_logged_out(&guarded.node, SOON).await;
    assert!(wall() >= overlap_ends, "the older secret has ended before the overlap");
    assert_eq!(browser.get(&guarded.node, "/").await.status, 200);

    // Fewer rights are fewer at once.
    change(&Record {
        grants: vec!["own:observe".parse().unwrap()],
        hashes: vec![newer.hash()],
        ..kept[1].clone()
    });
    let begun = Instant::now();
    loop {
        let answer = browser.get(&guarded.node, "/shards").await;
        if answer.status == 403 {
            return;
        }
        assert!(answer.status == 200 && begun.elapsed() < SOON, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A browser that is logged in. Ten logins are let through at once, then one a second.
async fn logged_in(node: &Node, token: &Token) -> Browser {
    let mut browser = Browser::default();
    let begun = Instant::now();
    loop {
        let answer = browser.log_in(node, &token.reveal()).await;
        if answer.status != 429 {
            assert_eq!(leads_to(&answer), "./");
            return browser;
        }
        assert!(begun.elapsed() < SOON, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_login_makes_a_session_of_its_own() {
    let admin = token(1);
    let guarded = GuardedNode::start(&file(&[record(&admin, &["*:all"])])).await;
    let node = &guarded.node;
    let mut victim = Browser::default();
    victim.log_in(node, &admin.reveal()).await;
    let (name, before) = victim.session().unwrap();

    // Whatever id the browser shows, another one is made, and the one before is of no use.
    let page = Browser::default().get(node, "/login").await;
    victim.keep(&page);
    let fields = [("form", &*signature(&page, "login")), ("token", &*admin.reveal())];
    assert_eq!(leads_to(&victim.post(node, "/login", &fields).await), "./");
    let after = victim.session().unwrap().1;
    assert_ne!(after, before);
    assert_eq!(victim.get(node, "/").await.status, 200);
    let mut thief = Browser::default();
    for planted in [before, "A".repeat(64), after[..63].to_owned(), format!("{after}A"), String::new()] {
        thief.cookies.insert(name.clone(), planted.clone());
        assert_eq!(leads_to(&thief.get(node, "/").await), "login", "{planted}");
    }

    // A token has ten sessions; the one that was used the longest ago makes room.
    let mut others = Vec::new();
    for _ in 0..9 {
        others.push(logged_in(node, &admin).await);
    }
    assert_eq!(victim.get(node, "/").await.status, 200);
    let mut last = logged_in(node, &admin).await;
    assert_eq!(leads_to(&victim.get(node, "/").await), "login", "its session was the oldest one");
    for browser in others.iter_mut().chain([&mut last]) {
        assert_eq!(browser.get(node, "/").await.status, 200);
    }
}

#[tokio::test]
async fn a_login_leads_to_no_other_site() {
    let admin = token(1);
    let guarded = GuardedNode::start(&file(&[record(&admin, &["*:all"])])).await;
    let mut browser = Browser::default();
    let page = browser.get(&guarded.node, "/login?next=//evil.example").await;
    let form = signature(&page, "login");
    let kept = browser.cookies.clone();
    for next in [
        "//evil.example",
        "https://evil.example",
        "\\evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "?a\r\nSet-Cookie: a=b",
        "x\0",
    ] {
        browser.cookies = kept.clone();
        let fields = [("form", &*form), ("token", &*admin.reveal()), ("next", next)];
        let answer = browser.post(&guarded.node, "/login", &fields).await;
        assert_eq!(leads_to(&answer), "./", "{next:?}");
        assert_eq!(answer.cookies.len(), 2, "{answer:?}");
    }
    let shown = browser.get(&guarded.node, "/login?next=%22%3E%3Cscript%3E").await;
    assert_eq!(leads_to(&shown), "./");
    browser.cookies.clear();
    let shown = browser.get(&guarded.node, "/login?next=%22%3E%3Cscript%3E").await.text();
    assert!(shown.contains("value=\"&quot;&gt;&lt;script&gt;\"") && !shown.contains("<script"), "{shown}");
}

#[tokio::test]
async fn refused_logins_look_alike_and_are_limited() {
    let [admin, ended, revoked, unknown] = [1, 2, 3, 4].map(token);
    let kept = [
        record(&admin, &["*:all"]),
        Record { ends: Some(Timestamp::from_micros(1)), ..record(&ended, &["*:all"]) },
        Record { revoked: true, ..record(&revoked, &["*:all"]) },
    ];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let wrong = Token::with_secret(admin.id().clone(), &[9; SECRET_BYTES]);
    let mut browser = Browser::default();
    let page = browser.get(&guarded.node, "/login").await;
    let signed = signature(&page, "login");
    let mut said = Vec::new();
    let shown = [ended, revoked, unknown, wrong].map(|token| token.reveal());
    for token in shown.iter().map(String::as_str).chain(["", "nonsense"]) {
        let mut answer = browser.post(&guarded.node, "/login", &[("form", &signed), ("token", token)]).await;
        assert_eq!((answer.status, answer.cookies.len()), (401, 0), "{answer:?}");
        answer.headers.remove("date");
        let mut headers: Vec<_> = answer.headers.clone().into_iter().collect();
        headers.sort();
        said.push((headers, answer.text()));
    }
    assert!(
        said.iter().all(|one| *one == said[0]) && said[0].1.contains("This token is not valid."),
        "{said:?}"
    );

    // Ten a second of an address. They keep nobody out who has a token.
    let mut limited = 0;
    for _ in 0..100 {
        let answer = browser.post(&guarded.node, "/login", &[("form", &signed), ("token", &shown[0])]).await;
        if answer.status == 429 {
            limited += 1;
            assert_eq!(answer.header("retry-after"), "1");
            assert!(answer.text().contains("Too many logins"), "{answer:?}");
        } else {
            assert_eq!(answer.status, 401);
        }
        if limited == 1 {
            let mut other = Browser::default();
            assert_eq!(leads_to(&other.log_in(&guarded.node, &admin.reveal()).await), "./");
        }
    }
    assert!(limited > 0, "a hundred failed logins at once are not limited");
    let metrics =
        Request::get("/metrics").with("Authorization", &bearer(&admin)).send(&guarded.node.http).await;
    let metrics = metrics.text();
    for reason in ["ended", "revoked", "unknown", "wrong", "malformed", "limited"] {
        let line = format!("forebay_auth_failures_total{{listener=\"http\",reason=\"{reason}\"}}");
        assert!(metrics.contains(&line), "{line} is missing");
    }
}

#[tokio::test]
async fn forms_are_taken_from_pages_of_the_node_alone() {
    let admin = token(1);
    let guarded = GuardedNode::start(&file(&[record(&admin, &["*:all"])])).await;
    let node = &guarded.node;
    let mut browser = Browser::default();
    let login = browser.get(node, "/login").await;
    let signed = [("form", &*signature(&login, "login")), ("token", &*admin.reveal())];
    let own = format!("http://{}", node.http);
    for (name, value) in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Sec-Fetch-Site", "none"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("X-Nothing", "at all"),
    ] {
        let answer = browser.send(node, form("/login", &signed).with(name, value)).await;
        assert_eq!((answer.status, answer.cookies.len()), (403, 0), "{name}: {value}");
    }
    let answer = browser.send(node, form("/login", &signed).with("Host", "evil.example")).await;
    assert_eq!((answer.status, answer.header("x-content-type-options")), (421, "nosniff"));
    assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"), "{answer:?}");
    // Another browser's form, the form of something else, and none.
    let foreign = signature(&Browser::default().get(node, "/login").await, "login");
    for signature in [&*foreign, "", "A"] {
        let answer = browser.post(node, "/login", &[("form", signature), ("token", &admin.reveal())]).await;
        assert!(answer.status == 403 && answer.cookies.is_empty(), "{answer:?}");
    }
    let answer = browser.post(node, "/login", &[signed[0], signed[0], signed[1]]).await;
    assert_eq!(answer.status, 403, "two signatures");
    let typed = Request::post("/login", "application/json", "{}").with("Sec-Fetch-Site", "same-origin");
    assert_eq!(browser.send(node, typed).await.status, 415);
    let large = "x".repeat(6 << 10);
    assert_eq!(browser.post(node, "/login", &[signed[0], ("token", &large)]).await.status, 413);
    let put = form("/login", &signed).by("PUT").with("Sec-Fetch-Site", "same-origin");
    assert_eq!(browser.send(node, put).await.status, 405);
    // A browser without TLS says its origin alone.
    let answer = browser.send(node, form("/login", &signed).with("Origin", &own)).await;
    assert_eq!(leads_to(&answer), "./");

    // A logout of others' pages.
    let page = browser.get(node, "/").await;
    let out = [("form", &*signature(&page, "logout"))];
    let answer = browser.send(node, form("/logout", &out).with("Sec-Fetch-Site", "cross-site")).await;
    assert_eq!(answer.status, 403);
    assert_eq!(browser.post(node, "/logout", &[]).await.status, 403);
    assert_eq!(browser.post(node, "/logout", &[("form", &foreign)]).await.status, 403);
    let answer = browser.get(node, "/logout").await;
    assert_eq!((answer.status, browser.get(node, "/").await.status), (405, 200), "a link changes nothing");
    let post = form("/", &[]).with("Sec-Fetch-Site", "cross-site");
    assert_eq!(browser.send(node, post).await.status, 403);
    assert_eq!(browser.post(node, "/", &[]).await.status, 405);
    assert_eq!(leads_to(&browser.post(node, "/logout", &out).await), "login");
}
