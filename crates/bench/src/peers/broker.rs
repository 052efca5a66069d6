//! A peer's server: a child process on a port of its own, in a temporary folder of its own.

use std::{fs, net::Ipv4Addr, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, bail};
use forebay_servers::{SupervisedChild, free_port};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::system::Part;

const START_PATIENCE: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(20);
/// Between our look and the server's bind another process may take the port.
const ATTEMPTS: usize = 3;

/// A running server. It is killed and its folder removed when this value is dropped, and also when this
/// process ends in whatever way.
#[derive(Debug)]
pub struct Broker {
    name: &'static str,
    running: Option<SupervisedChild>,
    folder: TempDir,
    port: u16,
}

impl Broker {
    /// Starts a server and returns when it takes connections. `command` gets an empty folder and a free
    /// port, prepares the folder, and says what to run.
    pub async fn start(
        name: &'static str,
        command: impl Fn(&Path, u16) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Self> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix("forebay-peer-").tempdir()?;
            let port = free_port()?;
            let running = SupervisedChild::spawn(&command(folder.path(), port)?, folder.path())?;
            let broker = Self { name, running: Some(running), folder, port };
            match broker.listens().await {
                Ok(()) => return Ok(broker),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| anyhow::anyhow!("{name} was not started")))
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its folder.
    #[cfg(any(feature = "postgres", feature = "rabbitmq"))]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process to measure.
    pub fn parts(&self) -> Vec<Part> {
        self.running.iter().map(|running| Part { role: "broker", pid: running.pid() }).collect()
    }

    /// Repeats `connect` until it succeeds: a server may take connections before it serves them. The last
    /// error is returned when that takes too long or the server has ended.
    pub async fn until_ready<T, E, F>(&self, mut connect: impl FnMut() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, E>>,
        E: Into<anyhow::Error>,
    {
        let mut last = None;
        let ready = timeout(START_PATIENCE, async {
            loop {
                match connect().await {
                    Ok(value) => return Some(value),
                    Err(error) => last = Some(error.into()),
                }
                if self.running.as_ref().is_none_or(SupervisedChild::has_ended) {
                    return None;
                }
                sleep(POLL).await;
            }
        });
        match ready.await {
            Ok(Some(value)) => Ok(value),
            _ => {
                let error = last.unwrap_or_else(|| anyhow::anyhow!("it does not answer"));
                Err(error).with_context(|| format!("{} did not start:\n{}", self.name, self.said()))
            }
        }
    }

    async fn listens(&self) -> anyhow::Result<()> {
        self.until_ready(|| TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))).await?;
        // A server that ended may have left its port to somebody else, who answered.
        if self.running.as_ref().is_none_or(SupervisedChild::has_ended) {
            bail!("{} did not start:\n{}", self.name, self.said());
        }
        Ok(())
    }

    /// The end of what the server has printed.
    fn said(&self) -> String {
        let log = fs::read(self.folder.path().join("output.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A server that can't be killed ends with this process; there is nobody to tell.
        let _ = self.running.take().map(SupervisedChild::kill);
    }
}
