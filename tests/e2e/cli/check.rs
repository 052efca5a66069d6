//! `forebay check topic` and `forebay check cluster`, as monitoring runs them. That of certificates is beside
//! the other tests of TLS.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{Server, run};

#[tokio::test]
async fn a_topic_is_compared_with_thresholds() {
    let server = Server::start().await;
    let check = |flags: &[&'static str]| [&["check", "topic", "mail"][..], flags].concat();
    let nagios = check(&["--warn", "age=1s,ready=10", "--critical", "dead=0", "--format", "nagios"]);
    // A topic that nobody has used is fine.
    let fine = server.run(&nagios).await.done();
    let figures = "age=0.000s;1.000; ready=0;10; leased=0;; scheduled=0;; dead=0;;0 waiting=0;;";
    assert_eq!(
        fine.trim_end(),
        format!(
            "FOREBAY TOPIC OK - mail: age 0ms, ready 0, leased 0, scheduled 0, dead 0, waiting 0 | {figures}"
        )
    );
    server.run(&["enqueue", "--topic", "mail", "--count", "2", "x"]).await.done();
    let begun = Instant::now();
    let mut ran = server.run(&nagios).await;
    while ran.status == 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", ran.stdout);
        sleep(Duration::from_millis(50)).await;
        ran = server.run(&nagios).await;
    }
    assert!(ran.status == 1 && ran.stdout.starts_with("FOREBAY TOPIC WARNING - mail: age 1s (above 1s) | "));
    assert_eq!(ran.stdout.lines().count(), 1);

    let taken = server.run(&["dequeue", "--topic", "mail", "-o", "json"]).await.json();
    let receipt = taken["items"][0]["receipt"].as_str().unwrap();
    server.run(&["nack", receipt, "--dead-letter"]).await.done();
    let ran = server.run(&check(&["--critical", "dead=0", "--format", "json"])).await;
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.status, &answer["severity"], &answer["status"]), (2, &json!("critical"), &json!(2)));
    assert_eq!(
        answer["figures"][4],
        json!({
            "name": "dead", "value": 1.0, "warn": null, "critical": 0.0, "severity": "critical",
        })
    );
    let gauges = server.run(&check(&["--warn", "ready=5", "--format", "prometheus"])).await.done();
    let line = "forebay_check_value{check=\"topic\",namespace=\"default\",topic=\"mail\",figure=\"ready\"} 1";
    assert!(gauges.lines().any(|it| it == line), "{gauges}");
}

#[tokio::test]
async fn a_cluster_is_checked_without_thresholds() {
    let server = Server::start().await;
    let fine = server.run(&["check", "cluster"]).await.done();
    assert!(fine.starts_with("cluster ok: ") && fine.contains("unserved 0, trouble 0, silent 0, live 1"));
    let few = server.run(&["check", "cluster", "--warn", "live=2"]).await;
    assert!(few.status == 1 && few.stdout.contains("live 1 (below 2)"), "{}", few.stdout);
}

#[tokio::test]
async fn what_can_not_be_found_out_is_unknown() {
    let nobody = run(&["check", "cluster", "--addr", "127.0.0.1:1", "--format", "nagios"]).await;
    let line = nobody.stdout.as_str();
    assert!(
        nobody.status == 3 && line.starts_with("FOREBAY CLUSTER UNKNOWN - ") && line.lines().count() == 1
    );
    assert!(line.contains("cannot reach 127.0.0.1:1"), "{line}");
    for (wrong, says) in [
        (&["check", "topic", "mail"][..], "nothing is checked"),
        (&["check", "topic", "mail", "--warn", "size=1"], "there is no such figure"),
        (&["check", "topic", "mail", "--warn", "age"], "NAME=VALUE"),
        (&["check", "topics"], "unrecognized subcommand"),
        (&["check", "certificate", "--addr", "127.0.0.1:1"], "has no TLS"),
    ] {
        let ran = run(wrong).await;
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.status == 3 && said.contains(says), "{} {said}", ran.status);
    }
    assert_eq!(run(&["check", "--help"]).await.status, 0);
}
