//! Commands that can't be run, for one item or for all.

use super::Server;

#[tokio::test]
async fn a_command_that_cannot_be_run_counts_no_failure_and_ends_the_worker() {
    let server = Server::start().await;
    server.enqueue(&["--max-attempts", "1"], "x").await;
    let stderr = server.run(&["worker", "--topic", "t", "--", "/nowhere/at-all"]).await.failed(1);
    assert!(stderr.contains("forebay: 5 times in a row: the command cannot be run: "), "{stderr}");
    server.settles_at([1, 0, 0, 0]).await;
    let item = server.next().await;
    assert_eq!(item["failures"], 0);
    // The worker may have leased it once more, with a call that waited, before it ended.
    let attempt = item["attempt"].as_u64().unwrap();
    assert!((6..=7).contains(&attempt), "{attempt}");
}

#[tokio::test]
async fn an_item_for_which_a_tool_is_missing_dies_and_the_others_are_done() {
    let server = Server::start().await;
    server.enqueue(&["--max-attempts", "2"], "bad").await;
    server.enqueue(&["--count", "3", "--priority", "5"], "good").await;
    let line = "read word || true; case $word in bad) exit 127 ;; esac";
    let ran = server.work(&["--idle-exit", "1s", "--retry-delay", "100ms"], line).await;
    assert_eq!(ran.stderr.matches(": released: the command cannot be run").count(), 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("3 done"), "{}", ran.stderr);
    ran.done();
    server.settles_at([0, 0, 0, 1]).await;

    // Where nothing can be worked on, the worker is to blame.
    server.enqueue(&["--count", "6"], "bad").await;
    let stderr = server.run(&["worker", "--topic", "t", "--shell", "exit 127"]).await.failed(1);
    assert!(stderr.contains("forebay: 5 items in a row: the command cannot be run: "), "{stderr}");
}
