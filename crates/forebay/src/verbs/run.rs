//! Runs a node from start to stop, for `dev` and `serve`.

use std::io::Write as _;

use forebay_node::{Node, config::Config, start, stop};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that stop a node.
pub struct ShutdownSignals {
    /// SIGTERM, from supervisors.
    terminate: Signal,
    /// SIGINT, from a terminal.
    interrupt: Signal,
}

impl ShutdownSignals {
    /// Listens from now on.
    pub fn listen() -> Result<Self, Failure> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt })
    }

    /// Waits for one of them.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
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
    let node = start::start(config).await.map_err(Failure::from_display)?;
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

fn print_ready_line(node: &Node) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "forebay ready grpc={} http={}", node.grpc(), node.http())?;
    out.flush()
}
