//! A server that one test owns, so that it can kill, stop and restart it.

use forebay_servers::{Kind, Place, Process, locate, required};

use super::database::{blocking, fresh_database};

/// A server of one test. It is killed when this value is dropped, or when the process ends.
#[derive(Debug)]
pub struct Private {
    /// Absent while it is being changed.
    process: Option<Process>,
    /// Its address: 127.0.0.1, unless it has a place of its own.
    host: String,
    /// The port, the same after a restart.
    pub port: u16,
    /// Its actual kind, see [`Server`](super::Server).
    pub kind: Kind,
}

impl Private {
    /// Starts a server. `flags`, as in `--sync-binlog=0`, override the usual ones. Panics with the reason if
    /// there is no server.
    pub async fn start(kind: Kind, flags: &[&str]) -> Self {
        Self::start_at(kind, flags, Place::default()).await
    }

    /// The same in this place.
    pub async fn start_at(kind: Kind, flags: &[&str], place: Place) -> Self {
        let host = place.host.clone();
        let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let started = blocking(move || {
            let install = match locate(kind) {
                Err(error) if !required()?.contains(&kind) => locate(kind.other()).map_err(|_| error)?,
                found => found?,
            };
            Process::start_at(install, &flags, place)
        });
        match started.await {
            Ok(process) => Self { host, port: process.port(), kind: process.kind(), process: Some(process) },
            Err(error) => panic!("{kind}: {error:#}"),
        }
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("mysql://root@{}:{}", self.host, self.port)
    }

    /// Creates a database with a random name. Returns its URL.
    pub async fn fresh_url(&self) -> String {
        match fresh_database(&self.url()).await {
            Ok(url) => url,
            Err(error) => panic!("cannot create a database on {}: {error:#}", self.url()),
        }
    }

    /// Ends the server with SIGKILL and waits until it has exited. Its data remains.
    pub async fn kill9(&mut self) {
        self.with("killed", Process::kill9).await;
    }

    /// Ends the server with SIGTERM and waits until it has exited. Its data remains.
    pub async fn stop(&mut self) {
        self.with("stopped", Process::stop).await;
    }

    /// Starts the server again on the same port and data, and waits until it accepts connections. A running
    /// server is killed first.
    pub async fn restart(&mut self) {
        self.with("restarted", Process::restart).await;
    }

    /// Pauses the server: connections stay open, and it does not answer.
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
        let Some(mut process) = self.process.take() else { panic!("an earlier change was interrupted") };
        let changed = blocking(move || {
            change(&mut process)?;
            Ok(process)
        });
        match changed.await {
            Ok(process) => self.process = Some(process),
            Err(error) => panic!("{} was not {what}: {error:#}", self.kind),
        }
    }
}
