//! The life of a simulated process, as its stores and its callers see it.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

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
    // A watch channel would wake its receivers in an order of its own making.
    state: Arc<(Mutex<Life>, Notify)>,
}

impl Process {
    /// A process that runs.
    pub fn new(number: usize) -> Self {
        Self { number, state: Arc::new((Mutex::new(Life::Running), Notify::new())) }
    }

    /// What it does now.
    pub fn life(&self) -> Life {
        *self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It does something else from now on. The dead stay dead.
    pub fn set(&self, life: Life) {
        {
            let now = &mut *self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
            if *now != Life::Dead {
                *now = life;
            }
        }
        self.state.1.notify_waiters();
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
        loop {
            let mut changed = pin!(self.state.1.notified());
            changed.as_mut().enable();
            if self.life() == life {
                return;
            }
            changed.await;
        }
    }
}
