//! Views of the process by a terminal and its user.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, timeout_at},
};

use super::{Server, forebay, run};

/// Expected output of a process must be there within this time.
const SHOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Output of a process, as it comes.
pub struct ProcessOutput {
    /// The pieces that were read.
    pieces: UnboundedReceiver<Vec<u8>>,
    /// Text that nobody has asked for yet.
    text: String,
}

impl ProcessOutput {
    /// Reads the output from there.
    pub fn of(mut from: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = unbounded_channel();
        // A read of a terminal can't be given up, so it has a thread of its own.
        std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                if sender.send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pieces, text: String::new() }
    }

    /// Waits until a text is shown. Returns all that was shown since the last one, and forgets it.
    pub async fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + SHOWN_TIMEOUT;
        while !self.text.contains(text) {
            match timeout_at(deadline, self.pieces.recv()).await {
                Ok(Some(piece)) => self.text.push_str(&String::from_utf8_lossy(&piece)),
                outcome => panic!("{text:?} was never shown ({outcome:?}): {:?}", self.text),
            }
        }
        std::mem::take(&mut self.text)
    }

    /// All that is shown until its end.
    pub async fn rest(mut self) -> String {
        let deadline = Instant::now() + SHOWN_TIMEOUT;
        while let Some(piece) = timeout_at(deadline, self.pieces.recv()).await.expect("an end") {
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
        self.text
    }
}

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
    let began = Instant::now();
    signal(&child, Signal::INT);
    let status = tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(log.any(|line| line.unwrap().contains("interrupted")));
}
