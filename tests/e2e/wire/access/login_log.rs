//! Lines of the log on logins.

use super::{GuardedNode, file, record, token};
use crate::wire::browser::{Browser, form, signature};

#[tokio::test]
async fn the_log_says_where_a_login_behind_a_proxy_comes_from() {
    let admin = token(1);
    let proxies = "[http]\ntrusted_proxies = [\"127.0.0.1\"]\n";
    let guarded = GuardedNode::start_with(&file(&[record(&admin, &["*:all"])]), proxies).await;
    let node = &guarded.node;
    let mut browser = Browser::default();
    let login = browser.get(node, "/login").await;
    let signature = signature(&login, "login");
    for (token, from, status) in [("x", "192.0.2.7", 401), (&*admin.reveal(), "192.0.2.8", 303)] {
        let request = form("/login", &[("form", &*signature), ("token", token)])
            .with("Sec-Fetch-Site", "same-origin")
            .with("X-Forwarded-For", from);
        assert_eq!(browser.send(node, request).await.status, status);
    }
    let log = std::fs::read_to_string(guarded.folder.path().join("log")).unwrap();
    for (line, from) in [("are not accepted (malformed)", "192.0.2.7"), ("has logged in", "192.0.2.8")] {
        let line = log.lines().find(|text| text.contains(line)).unwrap_or_else(|| panic!("{log}"));
        assert!(line.contains(from), "{line}");
    }
}
