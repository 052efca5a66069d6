//! The life of a simulated process, as its stores and its callers see it.

use std::sync::Arc;

use tokio::sync::watch;

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It does not reach its stores, and they don't reach it; what it sent is done.
    CutOff,
    /// It was killed: none of its steps after that has an effect, and no answer leaves it.
    Dead,
}

/// One simulated process. Clones are the same process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number in the run, from 1.
    pub number: usize,
    life: Arc<watch::Sender<Life>>,
}

impl Process {
    /// A process that runs.
    pub fn new(number: usize) -> Self {
        Self { number, life: Arc::new(watch::Sender::new(Life::Running)) }
    }

    /// What it does now.
    pub fn life(&self) -> Life {
        *self.life.borrow()
    }

    /// It does something else from now on. The dead stay dead.
    pub fn set(&self, life: Life) {
        self.life.send_if_modified(|now| {
            let changes = *now != Life::Dead && *now != life;
            if changes {
                *now = life;
            }
            changes
        });
    }

    /// Returns when the process reaches its stores: at once, later, or, for the dead, never.
    pub async fn gate(&self) {
        self.wait(Life::Running).await;
    }

    /// Returns when the process is dead.
    pub async fn died(&self) {
        self.wait(Life::Dead).await;
    }

    async fn wait(&self, life: Life) {
        let mut changes = self.life.subscribe();
        if changes.wait_for(|now| *now == life).await.is_err() {
            // No one can change it any more: `self` holds the sender, so this can't be.
            std::future::pending::<()>().await;
        }
    }
}
