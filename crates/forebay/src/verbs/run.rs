//! Runs nodes from start to stop, for `dev` and `serve`.

use std::io::{self, IsTerminal as _, Write as _};

use forebay_config::{Config, ConfigError};
use forebay_node::{Node, start, stop};
use futures_util::future::{join_all, select_all, try_join_all};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::failure::{Failure, Status};

/// The signals that stop a node: SIGTERM, from supervisors, and SIGINT, from a terminal.
pub struct ShutdownSignals(watch::Receiver<bool>);

impl ShutdownSignals {
    /// Listens from now on. Whatever takes long after the first signal, a Ctrl-C ends the process.
    pub fn listen() -> Result<Self, Failure> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (came, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if io::stderr().is_terminal() {
                eprintln!("stopping; Ctrl-C ends at once");
            }
            came.send_replace(true);
            interrupt.recv().await;
            eprintln!("forebay: interrupted; the next owner resolves what was under way");
            std::process::exit(Status::Interrupted as i32);
        });
        Ok(Self(receiver))
    }

    /// Waits for the first of them.
    pub async fn wait(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|came| *came).await;
    }
}

/// Starts nodes, prints a ready line for each, and stops them.
///
/// `serve` runs from the ready lines on and returns when the nodes are to stop. A signal before that stops
/// them without ready lines.
pub async fn run(
    configs: Vec<Config>,
    mut signals: ShutdownSignals,
    serve: impl AsyncFnOnce(&[Node], &mut ShutdownSignals) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // A node may have to wait for its catalog. It owns nothing before it has joined the cluster.
    let nodes = tokio::select! {
        nodes = try_join_all(configs.into_iter().map(start::start)) => nodes.map_err(Failure::from_display)?,
        () = signals.wait() => return Ok(()),
    };
    let ready = tokio::select! {
        _ = join_all(nodes.iter().map(Node::ready)) => true,
        () = signals.wait() => false,
        panic = any_failed(&nodes) => return Err(panicked(&panic)),
    };
    if ready {
        nodes.iter().try_for_each(print_ready_line)?;
        tokio::select! {
            served = serve(&nodes, &mut signals) => served?,
            panic = any_failed(&nodes) => return Err(panicked(&panic)),
        }
    }
    stop::stop_all(nodes).await.map_err(|panic| panicked(&panic))
}

/// Waits until a task of a node panics, and returns what it said.
async fn any_failed(nodes: &[Node]) -> String {
    select_all(nodes.iter().map(|node| Box::pin(node.failed()))).await.0
}

/// Nothing is stopped in order: the engine cannot. Other nodes take over its shards, and a supervisor starts
/// the process again.
fn panicked(panic: &str) -> Failure {
    Failure::new(format!("a task of the engine panicked: {panic}"))
}

/// Does nothing but wait for a signal.
pub async fn until_signal(_: &[Node], signals: &mut ShutdownSignals) -> Result<(), Failure> {
    signals.wait().await;
    Ok(())
}

/// SIGHUP, on which a node looks at the files of its certificates and tokens, and at what its configuration
/// says of the certificates of clients. Without this it would end the process.
pub struct Hangups(Signal);

impl Hangups {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Lets nodes look at each of these signals, until another one stops them. `again`: reads their
    /// configuration.
    pub async fn until_signal(
        mut self,
        nodes: &[Node],
        signals: &mut ShutdownSignals,
        again: impl Fn() -> Result<Config, ConfigError>,
    ) -> Result<(), Failure> {
        loop {
            tokio::select! {
                () = signals.wait() => return Ok(()),
                _ = self.0.recv() => look(nodes, again()),
            }
        }
    }
}

/// Lets nodes look at their files, and take over the certificates of clients in the configuration.
fn look(nodes: &[Node], config: Result<Config, ConfigError>) {
    nodes.iter().for_each(Node::look_at_files);
    match config {
        Ok(config) => nodes.iter().for_each(|node| node.set_certificates(config.access.certificates.clone())),
        Err(error) => {
            tracing::error!("the configuration is wrong; [[access.certificate]] stays as before: {error}");
        }
    }
}

fn print_ready_line(node: &Node) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "forebay ready grpc={} http={}", node.grpc(), node.http())?;
    out.flush()
}
