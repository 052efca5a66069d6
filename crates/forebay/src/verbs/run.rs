//! A node from its start to its end, as `dev` and `serve` run it.

use std::io::Write as _;

use forebay_node::{Node, config::Config, start, stop};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that end a node.
pub struct Ending {
    terminate: Signal,
    interrupt: Signal,
}

impl Ending {
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

/// Starts a node, says when it can serve, and stops it when told to. `meanwhile` runs from the ready line to
/// the signal.
pub async fn run<M: Meanwhile>(config: Config, mut ending: Ending, meanwhile: M) -> Result<(), Failure> {
    let node = start::start(config).await.map_err(Failure::from_display)?;
    tokio::select! {
        () = node.ready() => {
            ready_line(&node)?;
            let running = meanwhile.start(&node)?;
            ending.wait().await;
            M::end(running).await;
        }
        () = ending.wait() => {}
    }
    stop::stop(node).await;
    Ok(())
}

/// What goes on while a node serves.
pub trait Meanwhile {
    /// It, once it runs.
    type Running;
    /// Starts it.
    fn start(self, node: &Node) -> Result<Self::Running, Failure>;
    /// Ends it, before the node stops.
    fn end(running: Self::Running) -> impl Future<Output = ()>;
}

/// Nothing but serving.
pub struct Serving;

impl Meanwhile for Serving {
    type Running = ();

    fn start(self, _: &Node) -> Result<(), Failure> {
        Ok(())
    }

    async fn end((): ()) {}
}

fn ready_line(node: &Node) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "forebay ready grpc={} http={}", node.grpc(), node.http())?;
    out.flush()
}
