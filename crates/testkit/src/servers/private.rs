//! A server that one test owns, to be killed, stopped and started again.

use forebay_servers::{Kind, Process, locate, required};

use super::{blocking, fresh_database};

/// A server of one test alone. It is killed when this value is dropped, or when the process ends.
#[derive(Debug)]
pub struct Private {
    process: Option<Process>,
    /// The port on 127.0.0.1, the same after a restart.
    pub port: u16,
    /// What it really is; see [`super::Server::kind`].
    pub kind: Kind,
}

impl Private {
    /// Starts one. `flags` are handed to the server after the usual ones and win over them, as in
    /// `--sync-binlog=0`. Panics with the reason if there is no server.
    pub async fn start(kind: Kind, flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let started = blocking(move || {
            let install = match locate(kind) {
                Err(error) if !required()?.contains(&kind) => locate(kind.other()).map_err(|_| error)?,
                found => found?,
            };
            Process::start(install, &flags)
        });
        match started.await {
            Ok(process) => Self { port: process.port(), kind: process.kind(), process: Some(process) },
            Err(error) => panic!("{kind}: {error:#}"),
        }
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}", self.port)
    }

    /// Makes a database with a random name and returns its URL.
    pub async fn fresh_url(&self) -> String {
        match fresh_database(&self.url()).await {
            Ok(url) => url,
            Err(error) => panic!("a database on {}: {error:#}", self.url()),
        }
    }

    /// Ends the server with SIGKILL and waits until it is gone. Its data stays.
    pub async fn kill9(&mut self) {
        self.with("killed", Process::kill9).await;
    }

    /// Ends the server with SIGTERM, as an operator would, and waits until it is gone. Its data stays.
    pub async fn stop(&mut self) {
        self.with("stopped", Process::stop).await;
    }

    /// Starts the server on the same port and data, killing it first if it runs, and waits until it
    /// takes connections.
    pub async fn restart(&mut self) {
        self.with("restarted", Process::restart).await;
    }

    /// Stops the server's clock: connections stay open, nothing answers.
    pub async fn freeze(&mut self) {
        self.with("frozen", |process| process.freeze()).await;
    }

    /// Ends [`Private::freeze`].
    pub async fn thaw(&mut self) {
        self.with("thawed", |process| process.thaw()).await;
    }

    async fn with(
        &mut self,
        what: &str,
        change: impl FnOnce(&mut Process) -> anyhow::Result<()> + Send + 'static,
    ) {
        let Some(mut process) = self.process.take() else { panic!("an earlier change was cut off") };
        let changed = blocking(move || {
            change(&mut process)?;
            Ok(process)
        });
        match changed.await {
            Ok(process) => self.process = Some(process),
            Err(error) => panic!("{} not {what}: {error:#}", self.kind),
        }
    }
}
