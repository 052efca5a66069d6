//! `forebay worker`, with real commands: one test for each thing that it promises.

mod cannot_run;

use std::{
    io::{BufRead as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Stdio},
    time::Duration,
};

use forebay_proto::v1::{GetTopicRequest, admin_service_client::AdminServiceClient};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{CliOutput, Server, forebay, run_with};

/// How long anything may take that is not told to take longer.
const SOON: Duration = Duration::from_secs(20);

impl Server {
    async fn enqueue(&self, arguments: &[&str], payload: impl Into<Vec<u8>>) {
        self.run_with(&[&["enqueue", "--topic", "t"], arguments].concat(), payload).await.done();
    }

    /// Runs a worker with a line for the shell until it ends.
    async fn work(&self, flags: &[&str], line: &str) -> CliOutput {
        self.run(&[&["worker", "--topic", "t"], flags, &["--shell", line]].concat()).await
    }

    /// The next item with its attempt, failures and metadata, which is waited for.
    async fn next(&self) -> Value {
        let taken = self.run(&["dequeue", "--topic", "t", "--wait", "10s", "--ack", "-o", "json"]).await;
        taken.json()["items"][0].clone()
    }

    /// How many items of the topic are ready, leased, scheduled and dead.
    async fn counts(&self) -> [u64; 4] {
        let request = GetTopicRequest { namespace: "default".into(), topic: "t".into() };
        let found = AdminServiceClient::new(self.node.channel()).get_topic(request).await;
        let topic = found.ok().and_then(|found| found.into_inner().topic).unwrap_or_default();
        [topic.ready_count, topic.leased_count, topic.scheduled_count, topic.dead_count]
    }

    /// Waits until there are so many items in each state.
    async fn settles_at(&self, counts: [u64; 4]) {
        let begun = Instant::now();
        while self.counts().await != counts {
            assert!(begun.elapsed() < SOON, "{:?} instead of {counts:?}", self.counts().await);
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A worker that goes on.
struct RunningWorker {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Option<BufReader<ChildStderr>>,
}

impl RunningWorker {
    fn start(server: &Server, flags: &[&str], line: &str) -> Self {
        let mut command = forebay(&[&["worker", "--topic", "t"], flags, &["--shell", line]].concat());
        command.env("FOREBAY_ADDR", &server.node.grpc);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        let stderr = child.stderr.take().map(BufReader::new);
        Self { child, stdout, stderr }
    }

    /// The next line that a command prints.
    fn line(&mut self) -> String {
        self.stdout.next().expect("the worker goes on").unwrap()
    }

    /// The next line that the worker says itself.
    fn said(&mut self) -> String {
        let mut line = String::new();
        self.stderr.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// The number that a command prints of a process.
    fn pid(&mut self) -> Pid {
        Pid::from_raw(self.line().parse().unwrap()).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().cast_signed()).unwrap(), signal).unwrap();
    }

    /// The exit status and stderr, once it has ended.
    async fn end(mut self) -> (Option<i32>, String) {
        let stderr = self.stderr.take().unwrap();
        let read = tokio::task::spawn_blocking(move || std::io::read_to_string(stderr).unwrap());
        let ended = tokio::task::spawn_blocking(move || self.child.wait().unwrap());
        let status = timeout(SOON, ended).await.expect("it ends").unwrap();
        (status.code(), read.await.unwrap())
    }
}

/// Whether a process is there, and not only waited for by nobody.
fn lives(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    test_kill_process(process).is_ok() && stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn stdin_is_the_payload_and_need_not_be_read() {
    let server = Server::start().await;
    let payload = "x".repeat(250 << 10);
    server.enqueue(&[], payload.as_str()).await;
    let ran = server.work(&["--once"], "wc -c").await;
    assert_eq!(ran.stderr, "forebay: items: 1 done\n");
    assert_eq!(ran.done().trim(), (250 << 10).to_string());
    server.enqueue(&[], payload).await;
    server.work(&["--once"], "true").await.done();
    server.settles_at([0, 0, 0, 0]).await;
}

#[tokio::test]
async fn arguments_are_given_as_they_are() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let ran = server
        .run(&["worker", "--topic", "t", "--once", "--", "printf", "<%s>", "a  b", "$HOME;", "--topic"]);
    assert_eq!(ran.await.done(), "<a  b><$HOME;><--topic>");
    let none = server.run(&["worker", "--topic", "t"]).await.failed(2);
    assert!(none.contains("COMMAND"), "{none}");
}

#[tokio::test]
async fn the_environment_has_the_item_but_no_secret() {
    let server = Server::start().await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let item = ["--priority", "-3", "--metadata", "page 7", "--header", "tenant-id=a b", "--header"];
    server.enqueue(&[&item[..], &[&format!("traceparent={trace}")]].concat(), "x").await;
    let mut command = forebay(&["worker", "--topic", "t", "--once", "--", "env"]);
    command.env("FOREBAY_ADDR", &server.node.grpc);
    for inherited in ["FOREBAY_TOKEN", "FOREBAY_PEER_SECRET", "FOREBAY_HEADER_OLD", "OTHER"] {
        command.env(inherited, "inherited");
    }
    let printed = run_with(command, Vec::new()).await.done();
    let variable = |name: &str| {
        printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or("absent")
    };
    for (name, value) in [
        ("FOREBAY_TOPIC", "t"),
        ("FOREBAY_NAMESPACE", "default"),
        ("FOREBAY_PRIORITY", "-3"),
        ("FOREBAY_ATTEMPT", "1"),
        ("FOREBAY_FAILURES", "0"),
        ("FOREBAY_METADATA_BASE64", "cGFnZSA3"),
        ("FOREBAY_HEADER_TENANT_ID", "a b"),
        ("TRACEPARENT", trace),
        ("OTHER", "inherited"),
        ("FOREBAY_TOKEN", "absent"),
        ("FOREBAY_PEER_SECRET", "absent"),
        ("FOREBAY_HEADER_OLD", "absent"),
    ] {
        assert_eq!(variable(name), value, "{name}");
    }
    assert!(variable("FOREBAY_ITEM_ID").contains('-') && variable("FOREBAY_RESULT_FILE").starts_with('/'));
    for time in ["FOREBAY_ENQUEUED_AT", "FOREBAY_LEASE_EXPIRES_AT"] {
        assert!(variable(time).starts_with("20") && variable(time).ends_with('Z'), "{printed}");
    }
    assert!(!printed.to_lowercase().contains("receipt"), "{printed}");
}

#[tokio::test]
async fn the_exit_status_decides() {
    let server = Server::start().await;
    for (status, counts, says) in [
        ("0", [0, 0, 0, 0], "1 done"),
        ("65", [0, 0, 0, 1], "dead letter: bad"),
        ("100", [0, 0, 0, 2], "dead letter: bad"),
        ("75", [0, 0, 1, 2], "retried in "),
        ("1", [0, 0, 2, 2], "retried in "),
        ("$(kill -9 $$)", [0, 0, 3, 2], "retried in "),
    ] {
        server.enqueue(&[], "x").await;
        let delay = ["--once", "--retry-delay", "1h", "--retry-max", "1h"];
        let ran = server.work(&delay, &format!("echo bad >&2; exit {status}")).await;
        assert!(ran.stderr.contains(says), "{status}: {}", ran.stderr);
        ran.done();
        server.settles_at(counts).await;
    }
    server.enqueue(&[], "x").await;
    server.work(&["--once", "--ack-on", "3,4", "--dead-letter-on", "0"], "exit 4").await.done();
    server.enqueue(&[], "x").await;
    server.work(&["--once", "--ack-on", "3,4", "--dead-letter-on", "0"], "exit 0").await.done();
    server.settles_at([0, 0, 3, 3]).await;
}

#[tokio::test]
async fn the_end_of_stderr_is_the_reason_and_its_lines_are_marked() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let ran = server.work(&["--once"], "printf 'one\\033[1m\\ntwo\\n' >&2; exit 65").await;
    let (id, _) = ran.stderr.strip_prefix('[').unwrap().split_once(']').unwrap();
    let expected = format!(
        "[{id}] one\\u{{1b}}[1m\n[{id}] two\nforebay: {id}: dead letter: one\\u{{1b}}[1m; two\n\
         forebay: items: 1 dead letters\n"
    );
    assert_eq!(ran.stderr, expected);
}

#[tokio::test]
async fn delays_grow_with_the_failures() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let flags = ["--max-items", "3", "--retry-delay", "100ms"];
    let ran = server.work(&flags, "echo $FOREBAY_FAILURES $(date +%s%3N); exit 1").await;
    let runs: Vec<Vec<i64>> =
        ran.stdout.lines().map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect()).collect();
    assert_eq!(runs.iter().map(|run| run[0]).collect::<Vec<_>>(), [0, 1, 2], "{}", ran.stdout);
    // At least half of 100 ms and of 200 ms.
    assert!(runs[1][1] - runs[0][1] >= 50 && runs[2][1] - runs[1][1] >= 100, "{}", ran.stdout);
    assert_eq!(server.next().await["failures"], 3);
}

#[tokio::test]
async fn the_result_file_says_more_than_the_status() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let nack = r#"{"outcome":"nack","delay":"50ms","reason":"busy","metadataBase64":"cDc="}"#;
    let ran = server.work(&["--once"], &format!("echo '{nack}' > $FOREBAY_RESULT_FILE")).await;
    assert!(ran.stderr.contains("retried in 0s: busy"), "{}", ran.stderr);
    let item = server.next().await;
    assert_eq!((item["metadata"].as_str(), item["failures"].as_u64()), (Some("cDc="), Some(1)));

    server.enqueue(&[], "x").await;
    let ran = server.work(&["--once"], "echo '{\"outcome\":\"done\"}' > $FOREBAY_RESULT_FILE").await;
    assert!(
        ran.stderr.contains("FOREBAY_RESULT_FILE is not valid: unknown variant `done`"),
        "{}",
        ran.stderr
    );
    server.settles_at([0, 0, 1, 0]).await;
}

#[tokio::test]
async fn leases_are_extended_while_commands_run() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let ran = server.work(&["--once", "--lease", "1s"], "sleep 2.5; echo $FOREBAY_ATTEMPT").await;
    assert_eq!(ran.done(), "1\n");
    server.settles_at([0, 0, 0, 0]).await;
}

#[tokio::test]
async fn a_lost_lease_stops_the_command_and_drops_its_result() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let flags = ["--lease", "2s", "--once"];
    let mut worker = RunningWorker::start(&server, &flags, "echo $$; exec sleep 600");
    let process = worker.pid();
    // Frozen for longer than its lease, it loses the item to somebody else.
    worker.signal(Signal::STOP);
    let taken = server.next().await;
    assert_eq!(taken["attempt"], 2);
    worker.signal(Signal::CONT);
    let (status, stderr) = worker.end().await;
    assert!(status == Some(0) && stderr.contains("LEASE_LOST") && stderr.contains("1 lost"), "{stderr}");
    assert!(!lives(process));
    server.settles_at([0, 0, 0, 0]).await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_with_all_that_it_has_started() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let flags = ["--once", "--timeout", "200ms", "--kill-after", "200ms"];
    // The first one ignores SIGTERM, as does what it has started.
    let mut worker =
        RunningWorker::start(&server, &flags, "trap '' TERM; sleep 600 & echo $$; echo $!; wait");
    let (process, started) = (worker.pid(), worker.pid());
    let (status, stderr) = worker.end().await;
    assert!(status == Some(0) && stderr.contains("timed out after 200ms"), "{stderr}");
    let begun = Instant::now();
    while lives(process) || lives(started) {
        assert!(begun.elapsed() < SOON);
        sleep(Duration::from_millis(10)).await;
    }
    server.settles_at([0, 0, 1, 0]).await;
}

#[tokio::test]
async fn a_stop_waits_for_the_command() {
    let server = Server::start().await;
    server.enqueue(&["--count", "2"], "x").await;
    let folder = tempfile::Builder::new().prefix("forebay-worker-").tempdir().unwrap();
    let go = folder.path().join("go");
    let line = format!("echo begun; until [ -e {} ]; do sleep 0.02; done; echo ended", go.display());
    let mut worker = RunningWorker::start(&server, &[], &line);
    assert_eq!(worker.line(), "begun");
    worker.signal(Signal::TERM);
    assert!(worker.said().contains("stopping"));
    std::fs::write(go, "").unwrap();
    assert_eq!(worker.line(), "ended");
    let (status, stderr) = worker.end().await;
    assert!(status == Some(0) && stderr.ends_with("forebay: items: 1 done\n"), "{stderr}");
    // The other one was never leased.
    assert_eq!(server.counts().await, [1, 0, 0, 0]);
    assert_eq!(server.next().await["attempt"], 1);
}

#[tokio::test]
async fn a_stop_ends_commands_after_the_grace_and_releases_their_items() {
    let server = Server::start().await;
    server.enqueue(&["--max-attempts", "1"], "x").await;
    let mut worker = RunningWorker::start(&server, &["--grace", "100ms"], "echo $$; exec sleep 600");
    let process = worker.pid();
    worker.signal(Signal::TERM);
    let (status, stderr) = worker.end().await;
    assert!(status == Some(0) && stderr.contains("released: the worker stops"), "{stderr}");
    assert!(!lives(process));
    assert_eq!(server.next().await["failures"], 0);
}

#[tokio::test]
async fn a_second_signal_ends_all_at_once() {
    let server = Server::start().await;
    server.enqueue(&[], "x").await;
    let mut worker = RunningWorker::start(
        &server,
        &["--grace", "1h", "--kill-after", "1h"],
        "trap '' TERM; echo $$; sleep 600",
    );
    let process = worker.pid();
    worker.signal(Signal::INT);
    worker.signal(Signal::TERM);
    let (status, stderr) = worker.end().await;
    assert!(status == Some(130) && stderr.contains("interrupted"), "{stderr}");
    assert!(!lives(process));
    server.settles_at([1, 0, 0, 0]).await;
}

#[tokio::test]
async fn commands_run_side_by_side_and_the_worker_ends_when_idle() {
    let server = Server::start().await;
    server.enqueue(&["--count", "4"], "x").await;
    let folder = tempfile::Builder::new().prefix("forebay-worker-").tempdir().unwrap();
    let path = folder.path().display();
    // Each waits until all are there.
    let line =
        format!("touch {path}/$FOREBAY_ITEM_ID; until [ $(ls {path} | wc -l) = 4 ]; do sleep 0.02; done");
    let ran = server.work(&["--concurrency", "4", "--idle-exit", "200ms"], &line).await;
    assert!(ran.stderr.contains("4 done"), "{}", ran.stderr);
    ran.done();
    let none = server.work(&["--idle-exit", "50ms", "-q"], "true").await;
    assert_eq!((none.status, none.stderr.as_str()), (0, ""));
}

#[tokio::test]
async fn no_more_items_are_taken_than_wanted() {
    let server = Server::start().await;
    server.enqueue(&["--count", "5"], "x").await;
    server.work(&["--max-items", "3", "--concurrency", "2"], "true").await.done();
    server.settles_at([2, 0, 0, 0]).await;
    server.work(&["--once", "--concurrency", "9"], "true").await.done();
    server.settles_at([1, 0, 0, 0]).await;
}

#[tokio::test]
async fn one_item_is_one_lease_whatever_the_topics() {
    let server = Server::start().await;
    for topic in ["t", "u", "v"] {
        server.run(&["enqueue", "--topic", topic, "--count", "2", "x"]).await.done();
    }
    let ran = server.work(&["--once", "--topic", "u", "--topic", "v"], "echo $FOREBAY_TOPIC").await;
    assert_eq!((ran.stderr.as_str(), ran.stdout.lines().count()), ("forebay: items: 1 done\n", 1));
    let mut attempts = Vec::new();
    for topic in ["t", "u", "v"] {
        let taken = server.run(&["dequeue", "--topic", topic, "--max", "2", "-o", "json"]).await.json();
        attempts.extend(taken["items"].as_array().unwrap().iter().map(|item| item["attempt"].clone()));
    }
    assert_eq!(attempts, [1; 5], "none was leased and released");
}

#[tokio::test]
async fn a_worker_without_a_server_or_with_a_wrong_topic_says_so() {
    let server = Server::start().await;
    let wrong = server.run(&["worker", "--topic", "no blanks", "--", "true"]).await.failed(1);
    assert!(wrong.contains("INVALID_FIELD"), "{wrong}");
    let nobody =
        super::run(&["worker", "--addr", "127.0.0.1:1", "--topic", "t", "--", "true"]).await.failed(6);
    assert!(nobody.contains("cannot reach 127.0.0.1:1"), "{nobody}");
}
