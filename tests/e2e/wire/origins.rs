//! Web pages, and names that lead to this node: who may use the HTTP port.

use serde_json::json;

use super::{Wire, http1::Request, json::one};

const LISTED: &str = "https://app.example.com";
const CONFIGURED: &str =
    "[http]\nhosts = [\"queue.example.com\"]\ncors_origins = [\"https://app.example.com\"]\n";

#[tokio::test]
async fn a_request_for_another_host_is_misdirected() {
    let wire = Wire::with(CONFIGURED).await;
    for path in ["/", "/metrics", "/status.json", "/nothing", "/forebay.v1.QueueService/Ack"] {
        let answer = wire.http(Request::get(path).with("Host", "evil.example")).await;
        let document = answer.failure(421, "permission_denied");
        assert!(document["message"].as_str().unwrap().contains("`hosts` under [http]"), "{document}");
    }
    let call = || Request::call("Enqueue", &one("p"));
    wire.http(call().with("Host", "evil.example:7421")).await.failure(421, "permission_denied");
    assert!(wire.is_empty("t").await);
    for host in [
        "localhost:1",
        "127.0.0.1",
        "[::1]:7421",
        "10.1.2.3:7421",
        "queue.example.com",
        "QUEUE.example.com:80",
    ] {
        wire.http(call().with("Host", host)).await.message();
        assert_eq!(wire.http(Request::get("/status.json").with("Host", host)).await.status, 200, "{host}");
    }
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(wire.http(Request::get(probe).with("Host", "balancer.example")).await.status, 200);
    }
}

#[tokio::test]
async fn a_foreign_page_can_make_no_call() {
    let wire = Wire::with(CONFIGURED).await;
    let call = || Request::call("Enqueue", &one("p"));
    for (name, value) in [
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
    ] {
        let answer = wire.http(call().with(name, value)).await;
        answer.failure(403, "permission_denied");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    let asked = call().by("OPTIONS").with("Origin", "https://evil.example");
    let asked = asked.with("Sec-Fetch-Site", "cross-site").with("Access-Control-Request-Method", "POST");
    assert_eq!(wire.http(asked).await.status, 403);
    assert!(wire.is_empty("t").await);
    // A page of the node itself, somebody who typed the address, and a program.
    for site in ["same-origin", "none"] {
        wire.http(call().with("Sec-Fetch-Site", site)).await.message();
    }
    let own = format!("http://{}", wire.node.http);
    wire.http(call().with("Origin", &own)).await.message();
    wire.http(call()).await.message();
    // A page may load the dashboard's address, as any link does. It may not show it, as an image.
    let link = || Request::get("/").with("Sec-Fetch-Site", "cross-site");
    assert_eq!(wire.http(link().with("Sec-Fetch-Mode", "navigate")).await.status, 200);
    assert_eq!(wire.http(link().with("Sec-Fetch-Mode", "no-cors")).await.status, 403);
    let probe = Request::get("/healthz").with("Sec-Fetch-Site", "cross-site");
    assert_eq!(wire.http(probe.with("Sec-Fetch-Mode", "no-cors")).await.status, 200);
    // A call that reads is one too: it costs, and a look may be written down as the reader's.
    let target = "/forebay.v1.AdminService/WhoAmI?connect=v1&encoding=json&message=%7B%7D";
    let read = || Request::get(target).with("Sec-Fetch-Mode", "no-cors");
    assert_eq!(wire.http(Request::get(target)).await.status, 200);
    for site in ["cross-site", "same-site"] {
        wire.http(read().with("Sec-Fetch-Site", site)).await.failure(403, "permission_denied");
    }
    for site in ["same-origin", "none"] {
        assert_eq!(wire.http(read().with("Sec-Fetch-Site", site)).await.status, 200);
    }
    let listed = read().with("Sec-Fetch-Site", "cross-site").with("Origin", LISTED);
    assert_eq!(wire.http(listed).await.status, 200);
    let page = Request::post("/status.json", "application/json", "").with("Sec-Fetch-Site", "cross-site");
    assert_eq!(wire.http(page.with("Origin", LISTED)).await.status, 403, "a listed origin makes calls only");
}

#[tokio::test]
async fn a_page_of_a_listed_origin_may_make_calls() {
    let wire = Wire::with(CONFIGURED).await;
    let call = Request::call("Enqueue", &one("p"));
    let asked = call.by("OPTIONS").with("Origin", LISTED).with("Sec-Fetch-Site", "cross-site");
    let answer = wire.http(asked.with("Access-Control-Request-Method", "POST")).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    assert_eq!(answer.header("access-control-allow-origin"), LISTED);
    assert_eq!(answer.header("access-control-allow-methods"), "GET, POST");
    assert_eq!(
        answer.header("access-control-allow-headers"),
        "Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Authorization, X-User-Agent"
    );
    assert_eq!(answer.header("access-control-max-age"), "7200");
    assert_eq!(answer.header("vary"), "Origin");
    for message in [one("p"), json!({})] {
        let call = Request::call("Enqueue", &message).with("Origin", LISTED);
        let answer = wire.http(call.with("Sec-Fetch-Site", "cross-site")).await;
        assert_eq!(answer.status, if message == json!({}) { 400 } else { 200 });
        assert_eq!(answer.header("access-control-allow-origin"), LISTED, "refusals can be read too");
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}
