//! Where a client looks for its server.

use std::time::Duration;

use forebay_testkit::servers::free_port;
use tokio::time::Instant;

use super::{Server, run};

#[tokio::test]
async fn an_address_may_have_a_scheme_or_none() {
    let server = Server::start().await;
    let port = server.node.grpc.rsplit_once(':').unwrap().1;
    for addr in [
        server.node.grpc.clone(),
        format!("http://{}", server.node.grpc),
        format!("http://{}/", server.node.grpc),
        format!("localhost:{port}"),
    ] {
        let enqueued = run(&["enqueue", "--addr", &addr, "--topic", "mail", "hello"]).await;
        assert!(enqueued.done().contains("stored"), "{addr}");
    }
}

#[tokio::test]
async fn one_of_several_addresses_is_enough() {
    let server = Server::start().await;
    let nobody = format!("127.0.0.1:{}", free_port().unwrap());
    let both = format!("{nobody},{}", server.node.grpc);
    for flags in [vec!["--addr", &nobody, "--addr", &server.node.grpc], vec!["--addr", &both]] {
        let enqueued = run(&[&["enqueue", "--topic", "mail", "hello"], flags.as_slice()].concat()).await;
        assert!(enqueued.done().contains("stored"), "{flags:?}");
    }
    let other = format!("127.0.0.1:{}", free_port().unwrap());
    let stderr = run(&["topics", "--addr", &nobody, "--addr", &other]).await.failed(6);
    for part in [&nobody, &other] {
        assert!(stderr.contains(&format!("cannot reach {part}: nobody listens there")), "{stderr}");
    }
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let stderr = run(&["topics", "--addr", "127.0.0.1:1,localhost"]).await.failed(2);
    assert!(stderr.contains("\"localhost\"") && stderr.contains("has no port"), "{stderr}");
}

#[tokio::test]
async fn a_senseless_address_is_wrong_usage() {
    for (addr, why) in [
        ("", "names no host"),
        ("localhost", "has no port"),
        ("localhost:http", "port \"http\""),
        ("localhost:7420/mail", "has a path"),
        ("ftp://localhost:7420", "scheme \"ftp\""),
        ("https://localhost", "has no port"),
    ] {
        let stderr = run(&["topics", "--addr", addr]).await.failed(2);
        assert!(stderr.starts_with("forebay: --addr: ") && stderr.contains(why), "{addr}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_said_at_once() {
    let addr = format!("127.0.0.1:{}", free_port().unwrap());
    let begun = Instant::now();
    let stderr = run(&["enqueue", "--addr", &addr, "--topic", "mail", "hello"]).await.failed(6);
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    for part in [addr.as_str(), "nobody listens there", "`forebay dev`", "--addr"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[tokio::test]
async fn the_http_port_is_named_as_such() {
    let server = Server::start().await;
    let stderr = run(&["topics", "--addr", &server.node.http]).await.failed(1);
    assert!(stderr.contains(&server.node.http) && stderr.contains("HTTP port"), "{stderr}");
}
