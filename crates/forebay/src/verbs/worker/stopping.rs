//! How far a worker's stop has come. It only goes forward.

use std::time::Duration;

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::timeout,
};

use crate::failure::Failure;

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Not stopping.
    Running,
    /// No more items are wanted. Commands go on.
    Enough,
    /// Told to stop: no more items are taken. Commands go on.
    Draining,
    /// The grace is over: commands are told to stop, then killed.
    Terminate,
    /// Commands are killed at once.
    Kill,
}

/// The stage, shared by all that wait for it.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<Stage>);

impl StopSignal {
    /// Follows SIGTERM and SIGINT from now on.
    pub fn listen(grace: Duration) -> Result<Self, Failure> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stopping = Self(watch::Sender::new(Stage::Running));
        let this = stopping.clone();
        tokio::spawn(async move {
            let mut next = async || {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            };
            next().await;
            this.advance(Stage::Draining);
            if timeout(grace, next()).await.is_err() {
                this.advance(Stage::Terminate);
                next().await;
            }
            this.advance(Stage::Kill);
        });
        Ok(stopping)
    }

    /// Goes on to a stage, unless it is further already.
    pub fn advance(&self, to: Stage) {
        self.0.send_if_modified(|stage| {
            let further = *stage < to;
            *stage = to.max(*stage);
            further
        });
    }

    /// The present stage.
    pub fn now(&self) -> Stage {
        *self.0.borrow()
    }

    /// Waits until the stop has come so far.
    pub async fn reached(&self, stage: Stage) {
        // The sender lives: it is this.
        let _ = self.0.subscribe().wait_for(|now| *now >= stage).await;
    }
}
