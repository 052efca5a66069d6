//! The server of another queue: a child process with its own port and temporary folder.

use std::{fs, net::Ipv4Addr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, bail};
use forebay_servers::{SupervisedChild, free_port};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::system::ProcessRole;

const START_TIMEOUT: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Another process may take the port between our check and the server's bind.
const ATTEMPTS: usize = 3;

/// A running server. Dropping this value kills the server and removes its folder. The same happens when this
/// process ends, however it ends.
#[derive(Debug)]
pub struct ServerProcess {
    /// Name of the program, for messages.
    name: &'static str,
    /// The process; `None` only while it is dropped.
    running: Option<SupervisedChild>,
    /// Holds data and log; removed at the end.
    folder: TempDir,
    /// The port on 127.0.0.1.
    port: u16,
}

impl ServerProcess {
    /// Starts a server and returns when it accepts connections. `command` gets an empty folder and a free
    /// port, prepares the folder, and returns the command to run.
    pub async fn start(
        name: &'static str,
        command: impl Fn(&Path, u16) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Self> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix("forebay-bench-").tempdir()?;
            let port = free_port()?;
            let running = SupervisedChild::spawn(&command(folder.path(), port)?, folder.path())?;
            let server = Self { name, running: Some(running), folder, port };
            match server.listens().await {
                Ok(()) => return Ok(server),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("{name} was not started")))
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of data and log.
    #[cfg(any(feature = "postgres", feature = "rabbitmq"))]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process to measure.
    pub fn processes(&self) -> Vec<ProcessRole> {
        self.running.iter().map(|running| ProcessRole { role: "broker", pid: running.pid() }).collect()
    }

    /// Repeats `connect` until it succeeds: a server may accept connections before it serves them. Fails with
    /// the last error if that takes too long or the server has ended.
    pub async fn until_ready<T, E, F>(&self, mut connect: impl FnMut() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<anyhow::Error>,
    {
        let mut last = None;
        let ready = timeout(START_TIMEOUT, async {
            loop {
                match connect().await {
                    Ok(value) => return Some(value),
                    Err(error) => last = Some(error.into()),
                }
                if self.running.as_ref().is_none_or(SupervisedChild::has_ended) {
                    return None;
                }
                sleep(POLL_INTERVAL).await;
            }
        });
        match ready.await {
            Ok(Some(value)) => Ok(value),
            _ => {
                let error = last.unwrap_or_else(|| anyhow::anyhow!("the server does not answer"));
                Err(error).with_context(|| format!("{} did not start:\n{}", self.name, self.end_of_log()))
            }
        }
    }

    async fn listens(&self) -> anyhow::Result<()> {
        self.until_ready(|| TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))).await?;
        // If our server has ended, another process may have taken its port and answered.
        if self.running.as_ref().is_none_or(SupervisedChild::has_ended) {
            bail!("{} did not start:\n{}", self.name, self.end_of_log());
        }
        Ok(())
    }

    /// The end of the server's log.
    fn end_of_log(&self) -> String {
        let log = fs::read(self.folder.path().join("output.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A server that cannot be killed ends with this process. Drop has nobody to report to.
        let _ = self.running.take().map(SupervisedChild::kill);
    }
}
