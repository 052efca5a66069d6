//! Verbs over many items: `forebay topic purge`, `forebay dead-letter redrive`, `forebay operation`

use std::{
    fs::File,
    io::Write as _,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Server, forebay,
    process::{ProcessOutput, signal, terminal},
};

/// A server with so many items of a topic.
async fn filled(items: &str) -> Server {
    let server = Server::start().await;
    server.run(&["enqueue", "--topic", "mail", "--count", items, "x"]).await.done();
    server
}

#[tokio::test]
async fn a_purge_asks_first_and_says_what_it_did() {
    let server = filled("30").await;
    let stderr = server.run(&["topic", "purge", "mail"]).await.failed(2);
    assert!(stderr.contains("add --yes, or --dry-run"), "{stderr}");
    let counted = server.run(&["topic", "purge", "mail", "--dry-run"]).await.done();
    assert!(counted.starts_with("30 items would be removed\nsome of them: "), "{counted}");
    let counted = server.run(&["topic", "purge", "mail", "--dry-run", "-o", "json"]).await.json();
    assert_eq!(
        (&counted["exact"], &counted["operation"]["figures"]["matched"]),
        (&json!(true), &json!("30"))
    );
    let few = ["topic", "purge", "mail", "--expect-at-most", "3", "--yes"];
    assert!(server.run(&few).await.failed(1).contains("EXPECTATION_FAILED"));

    let some = ["topic", "purge", "mail", "--limit", "10", "--reason", "too old", "--yes", "-o", "json"];
    let done = server.run(&some).await.json();
    assert_eq!(
        (&done["state"], &done["kind"]),
        (&json!("OPERATION_STATE_SUCCEEDED"), &json!("OPERATION_KIND_PURGE"))
    );
    assert_eq!((&done["figures"]["changed"], &done["reason"]), (&json!("10"), &json!("too old")));
    let table = server.run(&["topic", "purge", "mail", "--yes"]).await.done();
    assert!(table.contains("changed") && table.contains("20") && table.contains("succeeded"), "{table}");
    assert!(server.run(&["topics"]).await.done().lines().count() <= 1);
}

#[tokio::test]
async fn dead_letters_are_redriven_and_deleted() {
    let server = filled("2").await;
    let taken = server.run(&["dequeue", "--topic", "mail", "--max", "2", "-o", "json"]).await.json();
    for item in taken["items"].as_array().unwrap() {
        let receipt = item["receipt"].as_str().unwrap();
        server.run(&["nack", receipt, "--dead-letter", "--reason", "timeout"]).await.done();
    }
    let redrive =
        ["dead-letter", "redrive", "mail", "--filter", "reason = \"time*\"", "--limit", "1", "--yes"];
    server.run(&redrive).await.done();
    let again = ["dead-letter", "redrive", "mail", "--max-redrives", "0", "--yes"];
    server.run(&again).await.failed(2);
    server.run(&["dead-letter", "delete", "mail", "--yes"]).await.done();
    let back = server.run(&["item", "list", "--topic", "mail", "-o", "name"]).await.done();
    let item = server.run(&["item", "get", back.trim()]).await.done();
    assert!(item.contains("redrives"), "{item}");
    let shown = server.run(&["topic", "get", "mail", "-o", "json"]).await.json();
    assert_eq!((&shown["topic"]["readyCount"], &shown["topic"]["deadCount"]), (&json!("1"), &json!("0")));
}

#[tokio::test]
async fn operations_are_listed_slowed_down_and_cancelled() {
    let server = filled("500").await;
    let purge = ["topic", "purge", "mail", "--rate", "1", "--yes", "--detach", "-o", "name"];
    let id = server.run(&purge).await.done();
    let id = id.trim();
    let listed = server.run(&["operation", "list", "-o", "json"]).await.json();
    assert_eq!((&listed["operations"][0]["id"], &listed["incompleteShards"]), (&json!(id), &json!([])));
    let slow = server.run(&["operation", "rate", id, "2", "-o", "json"]).await.json();
    assert_eq!(slow["ratePerSecond"], 2);
    assert!(server.run(&["operation", "get", id]).await.done().contains("under way"));
    server.run(&["operation", "cancel", id]).await.done();
    let watched = server.run(&["operation", "watch", id, "-o", "json"]).await;
    let ended: Value = serde_json::from_str(&watched.stdout).unwrap();
    assert_eq!(ended["state"], "OPERATION_STATE_CANCELLED");
    // As the verb that began it would end.
    let stderr = watched.failed(5);
    assert_eq!(stderr, format!("forebay: operation {id}: it was cancelled\n"));
    server.run(&["operation", "cancel", id]).await.done();
    let late = server.run(&["operation", "rate", id, "3"]).await.failed(1);
    assert!(late.contains("OPERATION_ENDED"), "{late}");
    server.run(&["operation", "get", &"0".repeat(32)]).await.failed(3);
}

#[tokio::test]
async fn items_of_a_topic_are_updated_and_cancelled_by_the_verbs_for_one() {
    let server = filled("12").await;
    let topic = ["--topic", "mail", "--filter", "priority < 3", "--yes", "-o", "json"];
    let update = [&["item", "update"], &topic[..], &["--priority", "5", "--ttl", "1h"]].concat();
    let done = server.run(&update).await.json();
    assert_eq!((&done["kind"], &done["figures"]["changed"]), (&json!("OPERATION_KIND_UPDATE"), &json!("12")));
    assert_eq!((&done["update"]["priority"], &done["update"]["ttl"]), (&json!(5), &json!("3600s")));
    let shown = server.run(&["operation", "get", done["id"].as_str().unwrap()]).await.done();
    assert!(shown.contains("priority 5, ttl 1h"), "{shown}");
    assert_eq!(server.run(&update).await.json()["figures"]["matched"], "0");
    let cancel = ["item", "cancel", "--topic", "mail", "--limit", "5", "--yes", "-o", "json"];
    assert_eq!(server.run(&cancel).await.json()["figures"]["changed"], "5");
    let counted = server.run(&["item", "cancel", "--topic", "mail", "--dry-run"]).await.done();
    assert!(counted.starts_with("7 items would be removed"), "{counted}");

    let wrong: [(&[&str], &str); 5] = [
        (&["item", "cancel", "1-1", "--filter", "age > 1h", "--yes"], "--filter is for many items"),
        (&["item", "update", "1-1", "--priority", "1", "--rate", "5"], "--rate is for many items"),
        (&["item", "cancel", "1-1", "--topic", "mail", "--yes"], "cannot be used with"),
        (&["item", "update", "--topic", "mail", "--yes"], "required"),
        (&["item", "cancel", "--yes"], "required"),
    ];
    for (args, what) in wrong {
        let stderr = server.run(args).await.failed(2);
        assert!(stderr.contains(what), "{args:?}: {stderr}");
    }
}

/// A purge that takes minutes.
fn slow_purge(server: &Server, flags: &[&str]) -> Command {
    let mut command = forebay(&["topic", "purge", "mail", "--rate", "1"]);
    command.args(flags).env("FOREBAY_ADDR", &server.node.grpc).stdout(Stdio::null());
    command
}

/// The operation that a verb says it has begun, once it runs. From then on interrupts are for it.
async fn begun(server: &Server, shown: &mut ProcessOutput) -> String {
    let text = shown.wait_for(" has begun").await;
    let (_, id) = text.split_once("operation ").expect("an id");
    let id = id.split_whitespace().next().unwrap().to_owned();
    let begun = Instant::now();
    while state(server, &id).await != "OPERATION_STATE_RUNNING" {
        assert!(begun.elapsed() < Duration::from_secs(30), "{id} does not run");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    id
}

async fn status(mut child: Child) -> Option<i32> {
    let ended = tokio::task::spawn_blocking(move || child.wait().unwrap());
    tokio::time::timeout(Duration::from_secs(30), ended).await.expect("an end").unwrap().code()
}

async fn state(server: &Server, id: &str) -> String {
    let shown = server.run(&["operation", "get", id, "-o", "json"]).await.json();
    shown["state"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_interrupt_without_a_terminal_leaves_the_operation_running_and_prints_its_id() {
    let server = filled("500").await;
    let mut purge = slow_purge(&server, &["--yes"]);
    let mut child = purge.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = ProcessOutput::of(child.stderr.take().unwrap());
    let id = begun(&server, &mut shown).await;
    signal(&child, Signal::INT);
    assert_eq!(status(child).await, Some(130));
    let text = shown.rest().await;
    assert!(text.contains(&format!("operation {id}: it goes on")), "{text}");
    assert_eq!(state(&server, &id).await, "OPERATION_STATE_RUNNING");
}

#[tokio::test]
async fn who_can_not_follow_an_operation_any_more_is_told_which_one() {
    let server = filled("500").await;
    let mut purge = slow_purge(&server, &["--yes", "--timeout", "1s"]);
    let mut child = purge.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = ProcessOutput::of(child.stderr.take().unwrap());
    let id = begun(&server, &mut shown).await;
    let Server { node, _folder } = server;
    node.kill9().await;
    assert_eq!(status(child).await, Some(6));
    let text = shown.rest().await;
    assert!(text.contains(&format!("operation {id}: ")), "{text}");
}

/// A verb that has a terminal of its own, which is written to and shows what it says.
fn at_a_terminal(mut command: Command) -> (Child, File, ProcessOutput) {
    let (controller, terminal) = terminal();
    let child = command.stdin(terminal.try_clone().unwrap()).stderr(terminal).spawn().unwrap();
    let shown = ProcessOutput::of(controller.try_clone().unwrap());
    (child, controller, shown)
}

/// Answers the question that an interrupt asks at a terminal. Returns the exit status and the operation.
async fn asked(server: &Server, answer: Option<&str>) -> (Option<i32>, String) {
    let (child, mut controller, mut shown) = at_a_terminal(slow_purge(server, &["--yes"]));
    let id = begun(server, &mut shown).await;
    signal(&child, Signal::INT);
    let question = shown.wait_for("[l]eave").await;
    assert!(question.contains(&id), "the question names the operation: {question}");
    match answer {
        Some(line) => controller.write_all(line.as_bytes()).unwrap(),
        None => signal(&child, Signal::INT),
    }
    (status(child).await, id)
}

#[tokio::test]
async fn an_interrupt_at_a_terminal_asks_what_is_to_become_of_the_operation() {
    let server = filled("500").await;
    let (ended, id) = asked(&server, Some("s\n")).await;
    assert_eq!((ended, state(&server, &id).await.as_str()), (Some(5), "OPERATION_STATE_CANCELLED"));
    let (ended, id) = asked(&server, Some("\n")).await;
    assert_eq!((ended, state(&server, &id).await.as_str()), (Some(130), "OPERATION_STATE_RUNNING"));
    server.run(&["operation", "cancel", &id]).await.done();
    let (ended, id) = asked(&server, None).await;
    assert_eq!((ended, state(&server, &id).await.as_str()), (Some(130), "OPERATION_STATE_RUNNING"));
}

/// Waits until a process takes interrupts itself.
async fn until_it_takes_interrupts(child: &Child) {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a line");
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        if caught & (1 << (Signal::INT.as_raw() - 1)) != 0 {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A purge that is to begin on a server that stands still, and an interrupt came.
async fn interrupted_while_it_begins(server: &Server) -> (Child, File, ProcessOutput) {
    let (child, mut controller, mut shown) = at_a_terminal(slow_purge(server, &["--timeout", "60s"]));
    shown.wait_for("Go on?").await;
    // The call that begins the operation has no answer for now.
    server.node.freeze();
    controller.write_all(b"y\n").unwrap();
    until_it_takes_interrupts(&child).await;
    signal(&child, Signal::INT);
    (child, controller, shown)
}

#[tokio::test]
async fn an_interrupt_while_an_operation_begins_waits_for_its_id() {
    let server = filled("500").await;
    let (child, mut controller, mut shown) = interrupted_while_it_begins(&server).await;
    shown.wait_for("waits for the operation's id").await;
    server.node.thaw();
    let question = shown.wait_for("[l]eave").await;
    controller.write_all(b"l\n").unwrap();
    assert_eq!(status(child).await, Some(130));
    let listed = server.run(&["operation", "list", "-o", "name"]).await.done();
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(question.contains(&format!("Operation {} runs.", listed.trim())), "{question}");
}

#[tokio::test]
async fn a_second_interrupt_while_an_operation_begins_ends_the_verb() {
    let server = filled("5").await;
    let (child, _controller, mut shown) = interrupted_while_it_begins(&server).await;
    shown.wait_for("another interrupt ends that").await;
    signal(&child, Signal::INT);
    shown.wait_for("the operation may have begun; `forebay operation list` shows it then").await;
    assert_eq!(status(child).await, Some(130));
    server.node.thaw();
}
