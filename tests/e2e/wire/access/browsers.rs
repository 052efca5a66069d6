//! Each page and form, with each kind of credential and each session.

use forebay_access::{FORMS, PAGES};
use serde_json::json;

use super::{
    GuardedNode, OWN, file,
    table::{Cast, Needs, ROUTES, Route, SENT},
};
use crate::wire::{
    browser::{Browser, form, signature},
    http1::Request,
};

#[tokio::test]
async fn every_page_is_decided_for_every_credential() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let mut served: Vec<_> = PAGES.iter().map(|page| page.0).collect();
    served.push("/nothing");
    let listed: Vec<_> = ROUTES.iter().map(|row| row.at.0).collect();
    assert_eq!(served, listed, "a page has no row in this table");
    let ask = async |target: &str, shown: &[&str]| {
        let with = |request: Request, text: &&str| request.with("authorization", text);
        shown.iter().fold(Request::get(target), with).send(&guarded.node.http).await
    };
    for Route { at: (path, query), needs, people, passed } in ROUTES {
        let (public, target) = (*needs == Needs::Nothing, format!("{path}{query}"));
        let refused = if public { 200 } else { 401 };
        let answer = ask(&target, &[]).await;
        // People are led to the login.
        assert_eq!(answer.status, if *people && !public { 303 } else { refused }, "{path}");
        assert_eq!(
            answer.header("www-authenticate"),
            if public || *people { "" } else { "Bearer" },
            "{path}"
        );
        for (kind, shown) in &cast.bad {
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            assert_eq!(ask(&target, &shown).await.status, refused, "{path} {kind}");
        }
        for (kind, shown, expected) in cast.expected(*needs) {
            let status = if expected.is_empty() { *passed } else { 403 };
            assert_eq!(ask(&target, &[shown]).await.status, status, "{path} {kind}");
        }
    }
}

/// A browser that has logged in with what a header shows.
async fn logged_in(guarded: &GuardedNode, shown: &str) -> Browser {
    let mut browser = Browser::default();
    let answer = browser.log_in(&guarded.node, shown.strip_prefix("Bearer ").unwrap()).await;
    assert_eq!(answer.status, 303, "{answer:?}");
    browser
}

#[tokio::test]
async fn every_page_is_decided_for_every_session() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let mut sessions = Vec::new();
    for (kind, shown, _) in cast.expected(Needs::Nothing) {
        sessions.push((kind, logged_in(&guarded, shown).await));
    }
    let mut over = logged_in(&guarded, &cast.admin).await;
    let out = signature(&over.clone().get(&guarded.node, "/").await, "logout");
    assert_eq!(over.clone().post(&guarded.node, "/logout", &[("form", &out)]).await.status, 303);
    for Route { at: (path, query), needs, people, passed } in ROUTES {
        let (public, target) = (*needs == Needs::Nothing, format!("{path}{query}"));
        // There is nothing to log in to.
        let passed = if *path == "/login" { 303 } else { *passed };
        for ((kind, browser), (_, _, expected)) in sessions.iter_mut().zip(cast.expected(*needs)) {
            let answer = browser.get(&guarded.node, &target).await;
            assert_eq!(answer.status, if expected.is_empty() { passed } else { 403 }, "{path} {kind}");
            if let Some(right) = expected.strip_prefix("SCOPE_MISSING ") {
                assert!(answer.text().contains(&format!("the right {right}")), "{answer:?}");
                assert_eq!(answer.text().contains("<html"), *people, "{path} {kind}");
            }
            // A link of another site may lead there.
            let link = Request::get(&target).with("Sec-Fetch-Site", "cross-site");
            assert_eq!(browser.send(&guarded.node, link).await.status, answer.status, "{path} {kind}");
        }
        let none = match (public, *people) {
            (true, _) => 200,
            (false, true) => 303,
            (false, false) => 401,
        };
        assert_eq!(over.get(&guarded.node, &target).await.status, none, "{path} with a session that is over");
        // A header decides over a session.
        let (_, browser) = sessions.iter_mut().find(|(kind, _)| *kind == "admin").unwrap();
        let both = Request::get(&target).with("authorization", &cast.bad[0].1[0]);
        let expected = if public { 200 } else { 401 };
        assert_eq!(browser.send(&guarded.node, both).await.status, expected, "{path}");
    }
}

#[tokio::test]
async fn every_form_is_refused_from_elsewhere() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let taken: Vec<_> = FORMS.iter().map(|form| form.0).collect();
    assert_eq!(taken, SENT.iter().map(|row| row.0).collect::<Vec<_>>(), "a form has no row in this table");
    let node = &guarded.node;
    let mut browser = logged_in(&guarded, &cast.admin).await;
    let before = browser.session();
    for (path, _) in SENT {
        for foreign in ["cross-site", "same-site", "none"] {
            let sent = form(path, &[]).with("Sec-Fetch-Site", foreign);
            assert_eq!(browser.send(node, sent).await.status, 403, "{path} {foreign}");
        }
        let sent = form(path, &[]).with("Sec-Fetch-Site", "same-origin");
        assert_eq!(browser.send(node, sent.with("Host", "evil.example")).await.status, 421, "{path}");
        // From here, but without a signature.
        assert_eq!(browser.post(node, path, &[("token", "x")]).await.status, 403, "{path}");
        assert_eq!(browser.session(), before);
        // Without a session, and with a credential that a browser does not send by itself. Whoever is not
        // known is led to the login, where a form needs somebody.
        let public = ["/login", "/logout"].contains(path);
        let unknown = if public { 403 } else { 303 };
        for (shown, own) in [("", unknown), (&*cast.admin, 403)] {
            let sent = form(path, &[("token", "x")]);
            let sent = if shown.is_empty() { sent } else { sent.with("Authorization", shown) };
            assert_eq!(sent.send(&node.http).await.status, 403, "{path}");
            let sent = form(path, &[("token", "x")]).with("Sec-Fetch-Site", "same-origin");
            let sent = if shown.is_empty() { sent } else { sent.with("Authorization", shown) };
            assert_eq!(sent.send(&node.http).await.status, own, "{path} without a signature");
        }
    }
}

#[tokio::test]
async fn a_form_is_shown_to_and_taken_from_those_with_its_right() {
    let cast = Cast::new();
    let guarded = GuardedNode::start(&file(&cast.tokens)).await;
    let node = &guarded.node;
    let item = json!({"namespace": OWN, "items": [{"topic": "mail", "payload": "eA=="}]});
    let stored = Request::call("Enqueue", &item).with("Authorization", &cast.own).send(&node.http).await;
    assert_eq!(stored.status, 200);
    let topic = "/topic?ns=own&name=mail";
    let shown_on = [("/login", "/login"), ("/pause", topic), ("/enqueue", topic), ("/logout", "/")];
    let mut sessions = Vec::new();
    for (kind, shown, _) in cast.expected(Needs::Nothing) {
        sessions.push((kind, shown, logged_in(&guarded, shown).await));
    }
    for (path, found_on) in shown_on {
        let needs = SENT.iter().find(|row| row.0 == path).unwrap().1;
        for ((kind, shown, browser), (_, _, expected)) in sessions.iter_mut().zip(cast.expected(needs)) {
            let page = match path {
                "/login" => Browser::default().get(node, "/login").await,
                _ => browser.get(node, found_on).await,
            };
            browser.keep(&page);
            let action = &path[1..];
            if !expected.is_empty() {
                assert!(!page.text().contains(&format!("action=\"{action}\"")), "{path} is shown to {kind}");
                continue;
            }
            // Whoever may not see the topic can't see its forms.
            if page.status == 403 {
                continue;
            }
            let signed = signature(&page, action);
            let token = shown.strip_prefix("Bearer ").unwrap();
            let fields = [
                ("form", &*signed),
                ("token", token),
                ("ns", OWN),
                ("name", "mail"),
                ("side", "dequeue"),
                ("payload", "x"),
            ];
            assert_eq!(browser.post(node, path, &fields).await.status, 303, "{path} {kind}");
            // In another namespace it takes another right.
            if path == "/pause" && *kind == "own" {
                let foreign = fields.map(|(name, value)| (name, if name == "ns" { "other" } else { value }));
                assert_eq!(browser.post(node, path, &foreign).await.status, 403, "{path} {kind}");
            }
        }
    }
}
