//! `forebay status`

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{CliOutput, Server, run};

/// The kinds of what is found, of a run that ended with this status.
#[track_caller]
fn kinds(ran: &CliOutput, status: i32) -> Vec<String> {
    assert_eq!(ran.status, status, "{}\n{}", ran.stderr, ran.stdout);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = answer["findings"].as_array().unwrap();
    findings.iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_is_wrong_is_said_with_what_to_look_at() {
    let server = Server::start().await;
    let fine = server.run(&["status"]).await.done();
    assert!(fine.starts_with("nothing is wrong; 1 of 1 nodes live; ") && fine.lines().count() == 1, "{fine}");
    let fine = server.run(&["status", "-o", "json"]).await.json();
    assert_eq!((&fine["severity"], &fine["nodes"]["good"]), (&"ok".into(), &1.into()), "{fine}");

    server.run(&["enqueue", "--topic", "mail", "x"]).await.done();
    let taken = server.run(&["dequeue", "--topic", "mail", "-o", "json"]).await.json();
    let receipt = taken["items"][0]["receipt"].as_str().unwrap();
    server.run(&["nack", receipt, "--dead-letter"]).await.done();
    assert_eq!(kinds(&server.run(&["status", "-o", "json"]).await, 1), ["dead_letters"]);
    assert_eq!(server.run(&["status", "--dead-letters", "1"]).await.status, 0);

    server.run(&["enqueue", "--topic", "sms", "x"]).await.done();
    let begun = Instant::now();
    let status = ["status", "--age", "1s", "-o", "json"];
    let mut ran = server.run(&status).await;
    while ran.status == 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "{}", ran.stdout);
        sleep(Duration::from_millis(50)).await;
        ran = server.run(&status).await;
    }
    assert_eq!(kinds(&ran, 2), ["old_items", "dead_letters"]);
    let table = server.run(&["status", "--age", "1s"]).await;
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].starts_with("1 critical, 1 warnings; "), "{}", table.stdout);
    assert!(lines[2].starts_with("critical  sms: ") && lines[2].ends_with("forebay topic get sms"));
    assert!(lines[3].starts_with("warning   mail: 1 dead letters") && lines[3].ends_with("groups"));
    assert_eq!(table.stderr, "");
    // Another tenant's topics are none of this one's.
    assert_eq!(server.run(&["status", "--namespace", "other"]).await.status, 0);
    assert_eq!(kinds(&server.run(&["status", "--all-namespaces", "-o", "json"]).await, 1), ["dead_letters"]);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_critical() {
    let ran = run(&["status", "--addr", "127.0.0.1:1", "-o", "json"]).await;
    assert_eq!(kinds(&ran, 2), ["no_answer"]);
    assert!(ran.stdout.contains("cannot reach 127.0.0.1:1"), "{}", ran.stdout);
}
