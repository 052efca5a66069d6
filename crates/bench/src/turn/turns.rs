//! How long the turns of an engine take, step by step.

use std::{future::Future, time::Duration};

use anyhow::{Context as _, ensure};
use forebay_engine::{Engine, Status};
use tokio::time::{Instant, sleep};

/// A node that is not at rest by then never will be.
const REST_MAX: Duration = Duration::from_secs(180);
/// A node is at rest if its event loop is busy for less than this in [`LOOK_EVERY`].
const BUSY_AT_REST: Duration = Duration::from_millis(2);
/// How often a node is looked at until it is at rest.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// The turns of an engine.
pub struct Turns {
    /// The engine.
    pub engine: Engine,
    /// The longest since the last [`Turns::step`].
    longest: Duration,
}

impl Turns {
    /// Looks at an engine from now on.
    pub fn of(engine: Engine) -> Self {
        Self { engine, longest: Duration::ZERO }
    }

    /// Looks at the engine now.
    pub async fn look(&mut self) -> anyhow::Result<Status> {
        let status = self.engine.status().await.context("the engine has stopped")?;
        self.longest = self.longest.max(status.turns.longest());
        Ok(status)
    }

    /// The longest turn since the last call.
    pub fn step(&mut self) -> Duration {
        std::mem::take(&mut self.longest)
    }

    /// Does something, and looks at the turns meanwhile.
    pub async fn during<T, F: Future<Output = anyhow::Result<T>>>(
        &mut self,
        what: impl FnOnce(Engine) -> F,
    ) -> anyhow::Result<T> {
        let what = what(self.engine.clone());
        tokio::pin!(what);
        let done = loop {
            tokio::select! {
                done = &mut what => break done,
                () = sleep(LOOK_EVERY) => { self.look().await?; }
            }
        };
        self.look().await?;
        done
    }

    /// Waits until the node is as it should be, and at rest.
    pub async fn rest(&mut self, is_ready: impl Fn(&Status) -> bool) -> anyhow::Result<()> {
        let until = Instant::now() + REST_MAX;
        let mut busy = self.look().await?.turns.busy();
        loop {
            sleep(LOOK_EVERY).await;
            let status = self.look().await?;
            let more = status.turns.busy() - std::mem::replace(&mut busy, status.turns.busy());
            // The look itself is a turn, too.
            if is_ready(&status) && more.saturating_sub(status.turns.longest()) < BUSY_AT_REST {
                return Ok(());
            }
            ensure!(Instant::now() < until, "the engine is still busy after {REST_MAX:?}");
        }
    }
}
