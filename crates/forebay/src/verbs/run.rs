//! Runs a node from start to stop, for `dev` and `serve`.

use std::io::{self, IsTerminal as _, Write as _};

use forebay_node::{Node, config::Config, start, stop};
use tokio::{
    signal::unix::{SignalKind, signal},
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

/// Starts a node, prints the ready line, and stops the node.
///
/// `serve` runs from the ready line on and returns when the node is to stop. A signal before the ready line
/// stops the node without it.
pub async fn run(
    config: Config,
    mut signals: ShutdownSignals,
    serve: impl AsyncFnOnce(&Node, &mut ShutdownSignals) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // A node may have to wait for its catalog. It owns nothing before it has joined the cluster.
    let waits = config.catalog.is_some();
    let node = tokio::select! {
        node = start::start(config) => node.map_err(Failure::from_display)?,
        () = signals.wait(), if waits => return Ok(()),
    };
    let ready = tokio::select! {
        () = node.ready() => true,
        () = signals.wait() => false,
        panic = node.failed() => return Err(panicked(&panic)),
    };
    if ready {
        print_ready_line(&node)?;
        tokio::select! {
            served = serve(&node, &mut signals) => served?,
            panic = node.failed() => return Err(panicked(&panic)),
        }
    }
    stop::stop(node).await.map_err(|panic| panicked(&panic))
}

/// Nothing is stopped in order: the engine cannot. Other nodes take over its shards, and a supervisor starts
/// the process again.
fn panicked(panic: &str) -> Failure {
    Failure::new(format!("a task of the engine panicked: {panic}"))
}

/// Does nothing but wait for a signal.
pub async fn until_signal(_: &Node, signals: &mut ShutdownSignals) -> Result<(), Failure> {
    signals.wait().await;
    Ok(())
}

fn print_ready_line(node: &Node) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "forebay ready grpc={} http={}", node.grpc(), node.http())?;
    out.flush()
}
