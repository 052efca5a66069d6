//! The pages over TLS: cookies that are sent over it alone, and headers that say so.

use forebay_client::TlsConfig;

use super::TlsFolder;
use crate::{
    kept_tokens::{file, record, token},
    wire::browser::Browser,
};

#[tokio::test]
async fn a_login_over_tls_makes_a_cookie_of_the_host_alone() {
    let keys = "[access]\ntokens_file = \"FOLDER/tokens.toml\"\n";
    let prepared = TlsFolder::new(|authority| authority.issue(&["127.0.0.1"]), keys).await;
    let token = token(7);
    std::fs::write(prepared.path("tokens.toml"), file(&[record(&token, &["*:observe"])])).unwrap();
    let tls = TlsConfig::default().ca_certificate(prepared.authority.pem());
    let secured = prepared.start(tls).await;
    let node = &secured.node;

    let mut browser = Browser::default();
    let answer = browser.get(node, "/").await;
    assert_eq!((answer.status, answer.header("location")), (303, "login"));
    assert_eq!(answer.header("strict-transport-security"), "max-age=31536000");
    let answer = browser.log_in(node, &token.reveal()).await;
    assert_eq!((answer.status, answer.header("location")), (303, "./"), "{answer:?}");
    let cookie = &answer.cookies[0];
    assert!(cookie.starts_with("__Host-forebay="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let page = browser.get(node, "/").await;
    assert!(page.status == 200 && page.text().contains("logged in as a"), "{page:?}");
    // The cookies of a node without TLS are none here.
    let (name, value) = browser.session().unwrap();
    assert_eq!(name, "__Host-forebay");
    let port = node.http.rsplit_once(':').unwrap().1;
    let mut other = Browser { cookies: [(format!("forebay_{port}"), value)].into() };
    assert_eq!(other.get(node, "/").await.status, 303);
}
