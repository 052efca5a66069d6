//! What a terminal and its user see of the process.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

use super::{Server, forebay, run};

/// Both ends of a terminal of its own.
pub fn terminal() -> (File, File) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
    (controller.into(), File::options().read(true).write(true).open(name).unwrap())
}

#[tokio::test]
async fn the_version_names_the_commit() {
    let version = run(&["--version"]).await.done();
    let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().unwrap();
    let commit = format!(" ({})", String::from_utf8(head.stdout).unwrap().trim());
    // Built outside of git, a program names none.
    let expected = if head.status.success() { commit.as_str() } else { "" };
    assert_eq!(version, format!("forebay {}{expected}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn somebody_at_a_terminal_is_told_what_is_read() {
    let server = Server::start().await;
    for (flags, what) in [(&[][..], "the payload"), (&["--lines"][..], "one item a line")] {
        let (mut controller, terminal) = terminal();
        let mut command = forebay(&["enqueue", "--topic", "t"]);
        command.args(flags).env("FOREBAY_ADDR", &server.node.grpc);
        command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        stderr.read_line(&mut line).unwrap();
        assert!(line.contains(what) && line.contains("Ctrl-D"), "{line}");
        controller.write_all(b"typed\n\x04").unwrap();
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        assert!(child.wait().unwrap().success() && stdout.contains("stored"), "{stdout}");
    }
    // A pipe is not told.
    assert_eq!(server.run_with(&["enqueue", "--topic", "t"], "x").await.stderr, "");
}

/// Sends a signal to a process that runs.
pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_second_interrupt_ends_at_once() {
    let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
    let config = folder.path().join("forebay.toml");
    let database = folder.path().join("1.db");
    // A node that takes 15 s to stop.
    let node = "[node]\ngrpc = \"127.0.0.1:0\"\nhttp = \"127.0.0.1:0\"\ndrain_ms = 15000\n";
    let text = format!("{node}\n[[shard]]\nid = 1\nurl = \"sqlite://{}\"\n", database.display());
    std::fs::write(&config, text).unwrap();
    let config = config.display().to_string();
    run(&["migrate", "--config", &config]).await.done();

    let mut command = forebay(&["serve", "--config", &config]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("forebay ready"), "{ready}");
    signal(&child, Signal::INT);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let stopping = log.find(|line| line.as_ref().unwrap().contains("stopping"));
    assert!(stopping.is_some());
    let began = tokio::time::Instant::now();
    signal(&child, Signal::INT);
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(log.any(|line| line.unwrap().contains("interrupted")));
}
