//! `forebay bench` while a node joins.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use forebay_testkit::{program, servers::Kind};
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::nodes::{Nodes, metric};
use crate::cli::process::{ProcessOutput, signal};

/// A node that joined is known to clients within this time, and a load that was interrupted has ended.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_while_a_load_runs_is_asked_for_its_items() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let first = cluster.start(0).await;
    cluster.all_owned(&[&first]).await;
    let mut command = Command::new(program());
    command.args(["bench", "--addr", &first.grpc, "--duration", "10m", "--producers", "1", "-o", "json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = ProcessOutput::of(child.stderr.take().unwrap());
    shown.wait_for("storing items in topic").await;

    let second = cluster.start(1).await;
    let since = Instant::now();
    let labels = "service=\"forebay.v1.QueueService\",method=\"Dequeue\",protocol=\"grpc\",code=\"Ok\"";
    while metric(&second, &format!("forebay_calls_total{{{labels}}}")).await == 0.0 {
        assert!(since.elapsed() < TIMEOUT, "the second node is not asked for items");
        sleep(Duration::from_millis(50)).await;
    }
    signal(&child, Signal::INT);
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let ended = timeout(TIMEOUT, ended).await.expect("the load ends").unwrap();
    let measured: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(
        (&measured["lost"], measured["deliveredAfterAck"].as_u64()),
        (&0.into(), Some(0)),
        "{measured}"
    );
    let said = shown.rest().await;
    assert!(ended.status.success(), "{:?}: {said}", ended.status);
}
