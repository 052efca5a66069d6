//! A running server.

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    hash::{BuildHasher as _, RandomState},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use rustix::process::Signal;

use crate::{
    find::Install,
    handshake::{Handshake, read_handshake},
    kind::Kind,
    place::Place,
    supervised_child::{SupervisedChild, as_root},
    template,
};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A private server in a private folder. Dropping this value kills the server and removes its folder. The
/// same happens when this process ends, however it ends.
#[derive(Debug)]
pub struct Process {
    /// The program that runs.
    install: Install,
    /// The caller's flags, which follow the usual ones.
    flags: Vec<String>,
    /// Where it runs.
    place: Place,
    /// Holds data, logs and socket; removed at the end.
    folder: tempfile::TempDir,
    /// The port on its place's address; a restart uses the same one.
    port: u16,
    /// The running server; `None` after a kill or a stop.
    running: Option<SupervisedChild>,
}

impl Process {
    /// Starts a server with an empty data folder on a free port. It commits durably, as Forebay requires:
    /// binary log on, and each commit synced in both logs. `flags` come last and override the usual ones.
    pub fn start(install: Install, flags: &[String]) -> anyhow::Result<Self> {
        Self::start_at(install, flags, Place::default())
    }

    /// The same in this place.
    pub fn start_at(install: Install, flags: &[String], place: Place) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("forebay-db-").tempdir()?;
        template::fill(&install, &folder.path().join("data"))?;
        let mut process = Self { install, flags: flags.to_vec(), place, folder, port: 0, running: None };
        // Another process may take the port between our check and the server's bind.
        let mut last = None;
        for _ in 0..3 {
            process.port = free_port()?;
            match process.run() {
                Ok(_) => return Ok(process),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("the server was not started")))
    }

    /// Starts it again on the same port and data, after [`Process::kill9`] or [`Process::stop`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill9()?;
        self.run().map(drop)
    }

    /// Ends it with SIGKILL and waits until it is gone. The data stays.
    pub fn kill9(&mut self) -> anyhow::Result<()> {
        match self.running.take() {
            Some(running) => running.kill(),
            None => Ok(()),
        }
    }

    /// Ends it with SIGTERM, as an operator would, and waits until it is gone. The data stays.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        let Some(running) = &self.running else { return Ok(()) };
        running.signal(Signal::TERM)?;
        if !wait_until(STOP_TIMEOUT, || running.has_ended()) {
            bail!("{} did not stop within {STOP_TIMEOUT:?}", self.install.kind);
        }
        self.kill9()
    }

    /// Sends SIGSTOP: connections stay open and nothing answers.
    pub fn freeze(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Sends SIGCONT after [`Process::freeze`].
    pub fn thaw(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    /// The port on its place's address.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server itself; `None` if it is not running.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(SupervisedChild::pid)
    }

    /// The kind of server.
    pub fn kind(&self) -> Kind {
        self.install.kind
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("mysql://root@{}:{}", self.place.host, self.port)
    }

    /// The folder that holds the data folder and the error log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        self.running.as_ref().context("the server is not running")?.signal(signal)
    }

    fn run(&mut self) -> anyhow::Result<Handshake> {
        let mut command = self.place.command(&self.install.program[0]);
        command.args(&self.install.program[1..]).args(self.arguments());
        let server = self.running.insert(SupervisedChild::spawn(&command, self.folder.path())?);

        let address = format!("{}:{}", self.place.host, self.port);
        let mut handshake = None;
        let settled = wait_until(START_TIMEOUT, || {
            handshake = read_handshake(&address).ok();
            handshake.is_some() || server.has_ended()
        });
        match handshake {
            // If our server has ended, another process may have taken its port and answered.
            Some(handshake) if settled && !server.has_ended() => Ok(handshake),
            _ => {
                let log = fs::read_to_string(self.error_log()).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(20).collect();
                self.kill9()?;
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                bail!("{} did not start:\n{tail}", self.install.kind)
            }
        }
    }

    fn error_log(&self) -> PathBuf {
        self.folder.path().join("error.log")
    }

    fn arguments(&self) -> Vec<OsString> {
        let folder = self.folder.path();
        let share = &self.install.share;
        let mut flags: Vec<String> = as_root();
        flags.extend([
            format!("--datadir={}", folder.join("data").display()),
            format!("--lc-messages-dir={}", share.display()),
            format!("--character-sets-dir={}", share.join("charsets").display()),
            format!("--log-error={}", self.error_log().display()),
            format!("--socket={}", folder.join("s.sock").display()),
            format!("--pid-file={}", folder.join("pid").display()),
            format!("--bind-address={}", self.place.host),
            format!("--port={}", self.port),
            format!("--server-id={}", self.port),
        ]);
        let common = [
            "--skip-name-resolve",
            "--performance-schema=OFF",
            "--max-connections=500",
            "--table-open-cache=400",
            "--innodb-buffer-pool-size=64M",
            "--innodb-log-buffer-size=4M",
            "--log-bin=binlog",
            "--binlog-row-image=MINIMAL",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
        ];
        let of_kind: &[&str] = match self.install.kind {
            Kind::MariaDb => &["--innodb-log-file-size=32M", "--binlog-format=ROW"],
            Kind::MySql => &["--innodb-redo-log-capacity=32M", "--mysqlx=OFF", "--secure-file-priv=NULL"],
        };
        flags.extend(common.iter().chain(of_kind).map(|flag| (*flag).to_owned()));
        flags.extend(self.flags.iter().cloned());
        flags.into_iter().map(OsString::from).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A server that cannot be killed ends with this process. Drop has nobody to report to.
        let _ = self.kill9();
    }
}

/// A port that is free, and that no other process gets here until this one ends: a server takes it a moment
/// later, or takes it again after a restart. It lies below the range of ephemeral ports, so that no outgoing
/// connection takes it while its server is down.
pub fn free_port() -> anyhow::Result<u16> {
    /// One for each port that this process was given. A lock ends with its file.
    static LOCKED: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let folder = env::temp_dir().join(format!("forebay-ports-{}", rustix::process::getuid().as_raw()));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for _ in 0..1_000 {
        let port = 15_000 + (random() % 17_000) as u16;
        let path = folder.join(port.to_string());
        let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        if file.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            LOCKED.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            return Ok(port);
        }
    }
    bail!("found no free port between 15000 and 31999 in 1,000 attempts")
}

/// A random number, for names that no two tests share.
pub fn random() -> u64 {
    // A hasher's random key is the standard library's one source of randomness.
    RandomState::new().hash_one(())
}

/// Polls until `done` returns true or the timeout has passed. Returns whether it was done.
#[expect(clippy::disallowed_methods, reason = "a server outside of this process runs on real time")]
fn wait_until(timeout: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() > timeout {
            return false;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
