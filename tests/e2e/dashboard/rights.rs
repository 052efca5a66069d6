//! Pages and acts of people who may not do everything.

use std::fs;

use forebay_access::Token;
use tempfile::TempDir;

use super::chromium::{Chromium, Looks};
use crate::{
    kept_tokens::{file, record, token},
    node::Node,
    wire::http1::Request,
};

/// A node that asks for credentials, with an item in a topic of two tenants.
async fn guarded(tokens: &str, admin: &Token) -> (Node, TempDir) {
    let folder = tempfile::Builder::new().prefix("forebay-rights-").tempdir().unwrap();
    let at = |file: &str| folder.path().join(file).display().to_string();
    fs::write(at("tokens.toml"), tokens).unwrap();
    let text = format!(
        "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain_ms = 0\n\
         [http]\ngrafana = \"https://grafana.example/d/forebay?var-namespace={{namespace}}\
         &var-topic={{topic}}\"\n\
         [access]\ntokens_file = \"{}\"\n[[shard]]\nid = 1\nurl = \"sqlite://{}\"\n",
        at("tokens.toml"),
        at("1.db"),
    );
    fs::write(at("forebay.toml"), text).unwrap();
    let config = ["--config".to_owned(), at("forebay.toml")];
    Node::run(&[&["migrate".to_owned()], &config[..]].concat()).await;
    let node = Node::start(&[&["serve".to_owned()], &config[..]].concat(), &folder.path().join("log")).await;
    for namespace in ["shop", "other"] {
        let item = serde_json::json!({"topic": "mail", "payload": "c2VjcmV0"});
        let call = Request::call("Enqueue", &serde_json::json!({"namespace": namespace, "items": [item]}));
        let shown = format!("Bearer {}", admin.reveal());
        assert_eq!(call.with("Authorization", &shown).send(&node.http).await.status, 200);
    }
    (node, folder)
}

async fn log_in(browser: &Chromium, token: &Token) {
    browser.fill("input[name=token]", &token.reveal()).await;
    browser.click("Log in").await;
}

#[tokio::test]
async fn a_tenant_sees_its_own_and_no_levers() {
    let (admin, watcher, operator) = (token(1), token(2), token(3));
    let tokens = [
        record(&admin, &["*:all"]),
        record(&watcher, &["shop:observe"]),
        record(&operator, &["shop:observe,operate,inspect"]),
    ];
    let (node, _folder) = guarded(&file(&tokens), &admin).await;
    let browser = Chromium::start(Looks::default()).await;
    let at = |page: &str| format!("http://{}/{page}", node.http);
    let topic = at("topic?ns=shop&name=mail");

    // The page that was asked for comes after the login.
    browser.open(&topic).await;
    browser.picture("login").await;
    log_in(&browser, &watcher).await;
    browser.until_shown("mail").await;
    let page = browser.page().await;
    assert!(!page.contains("Pause deliveries") && !page.contains("secret"), "{page}");
    assert!(!browser.has("form[action=pause]").await && !browser.has("form[action=enqueue]").await);
    assert!(!browser.has(".pick").await, "no rows are chosen by who may do nothing with them");
    browser.open(&at("confirm?action=cancel&ns=shop&name=mail&chosen=1&id=1-1")).await;
    browser.until_shown("Not allowed").await;
    browser.open(&at("namespace?ns=shop")).await;
    browser.until_shown("(inherited)").await;
    assert!(!browser.has("form[action=put-namespace]").await);
    browser.open(&at("")).await;
    browser.until_shown("shop").await;
    let page = browser.page().await;
    assert!(!page.contains("other") && !page.contains("Shards") && !page.contains("Nodes"), "{page}");
    browser.picture("tenant").await;
    for foreign in [
        "topics?ns=other",
        "topic?ns=other&name=mail",
        "namespace?ns=other",
        "shards",
        "nodes",
        "audit?ns=shop",
    ] {
        browser.open(&at(foreign)).await;
        browser.until_shown("Not allowed").await;
    }
    browser.open(&at("topics?ns=shop")).await;
    browser.click("log out").await;
    browser.until_shown("Token").await;
    browser.open(&topic).await;
    browser.until_shown("Log in").await;

    log_in(&browser, &operator).await;
    browser.until_shown("secret").await;
    assert!(browser.has(".pick input").await);
    // It has the lever.
    browser.click("Pause deliveries").await;
    browser.until_shown("Deliveries are paused.").await;
}

#[tokio::test]
async fn pages_lead_to_grafana_where_it_is_configured() {
    let admin = token(1);
    let (node, _folder) = guarded(&file(&[record(&admin, &["*:all"])]), &admin).await;
    let shown = format!("Bearer {}", admin.reveal());
    let begins = "https://grafana.example/d/forebay?var-namespace=";
    for (page, expected) in [
        ("/", "%24__all&amp;var-topic=%24__all"),
        ("/topics?ns=shop", "shop&amp;var-topic=%24__all"),
        ("/topic?ns=shop&name=mail", "shop&amp;var-topic=mail"),
    ] {
        let answer = Request::get(page).with("Authorization", &shown).send(&node.http).await;
        let link = format!("href=\"{begins}{expected}\"");
        assert!(answer.text().contains(&link), "{page}: {link} in {}", answer.text());
    }
}
