//! The command line, as processes: what they print, and their exit status.

mod address;
mod audit;
mod bench;
mod check;
mod check_config;
mod complete;
mod consumers;
mod context;
mod dead_letters;
mod dequeue;
mod enqueue;
mod formats;
mod help;
mod items;
mod operations;
mod pauses;
pub mod process;
mod settings;
mod settle;
mod status;
mod top;
mod topics;
mod worker;

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use forebay_testkit::program;
use serde_json::Value;
use tempfile::TempDir;

use crate::node::Node;

/// Results of a run of `forebay`.
struct CliOutput {
    /// The exit status; -1 after a signal.
    status: i32,
    stdout: String,
    stderr: String,
}

impl CliOutput {
    /// Stdout, of a run that did what it was told.
    #[track_caller]
    fn done(self) -> String {
        assert_eq!(self.status, 0, "{}", self.stderr);
        self.stdout
    }

    /// Stdout as JSON.
    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.done()).expect("JSON")
    }

    /// Stderr, of a run that ended with this status.
    #[track_caller]
    fn failed(self, status: i32) -> String {
        assert_eq!(self.status, status, "{}\n{}", self.stderr, self.stdout);
        self.stderr
    }
}

impl From<Output> for CliOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        let status = output.status.code().unwrap_or(-1);
        Self { status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// `forebay` without what this process's environment says of it.
fn forebay(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .env_remove("FOREBAY_ADDR")
        .env_remove("FOREBAY_NAMESPACE")
        .env_remove("FOREBAY_CONTEXT")
        .env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

/// Runs a command with this on its stdin.
async fn run_with(mut command: Command, stdin: Vec<u8>) -> CliOutput {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = move || {
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        // A process that fails does not read it all.
        let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        output
    };
    tokio::task::spawn_blocking(run).await.unwrap().into()
}

/// Runs `forebay` without a server.
async fn run(arguments: &[&str]) -> CliOutput {
    run_with(forebay(arguments), Vec::new()).await
}

/// A node of its own for one test.
struct Server {
    node: Node,
    _folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With these flags of `forebay dev`.
    async fn start_with(flags: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let own = ["dev", "--data-dir", &data, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let arguments: Vec<String> = own.iter().chain(flags).map(|flag| (*flag).to_owned()).collect();
        let node = Node::start(&arguments, &folder.path().join("log")).await;
        node.owns(2).await;
        Self { node, _folder: folder }
    }

    /// Runs a verb of a client.
    async fn run(&self, arguments: &[&str]) -> CliOutput {
        self.run_with(arguments, Vec::new()).await
    }

    /// The same with this on its stdin.
    async fn run_with(&self, arguments: &[&str], stdin: impl Into<Vec<u8>>) -> CliOutput {
        let mut command = forebay(arguments);
        command.env("FOREBAY_ADDR", &self.node.grpc);
        run_with(command, stdin.into()).await
    }
}

/// Bytes as JSON output has them.
fn bytes(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().expect("a text")).expect("base64")
}
