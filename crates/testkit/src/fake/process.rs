//! The state of a simulated process, as its stores and its callers see it.

use std::{
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Notify;

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Running,
    /// It cannot reach its stores. What it already sent takes effect.
    CutOff,
    /// It was killed. Its tasks are gone, and it sends no answer.
    Dead,
}

/// One simulated process. Clones are the same process.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number in the run, from 1.
    pub number: usize,
    /// Its state, and how often it stopped running. A watch channel would wake its receivers in an
    /// unspecified order.
    state: Arc<(Mutex<(Life, u64)>, Notify)>,
}

impl Process {
    /// A running process.
    pub fn new(number: usize) -> Self {
        Self { number, state: Arc::new((Mutex::new((Life::Running, 0)), Notify::new())) }
    }

    /// Its current state.
    pub fn life(&self) -> Life {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// How often its connections broke: it was cut off, or died.
    pub fn breaks(&self) -> u64 {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Changes its state. A dead process stays dead.
    pub fn set(&self, life: Life) {
        {
            let now = &mut *self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
            if now.0 == Life::Running && life != Life::Running {
                now.1 += 1;
            }
            if now.0 != Life::Dead {
                now.0 = life;
            }
        }
        self.state.1.notify_waiters();
    }

    /// Returns when the process can reach its stores. For a dead process that is never.
    pub async fn gate(&self) {
        self.wait(|life| life == Life::Running).await;
    }

    /// Returns when the process is dead.
    pub async fn died(&self) {
        self.wait(|life| life == Life::Dead).await;
    }

    /// Returns when the process can reach its stores, or is dead.
    pub async fn reached_or_died(&self) {
        self.wait(|life| life != Life::CutOff).await;
    }

    /// Counts an operation that the process does not end, because it dies in the midst of it.
    pub(super) fn watch<F: FnMut()>(&self, dropped: F) -> Watch<F> {
        Watch { process: self.clone(), dropped: Some(dropped) }
    }

    async fn wait(&self, until: impl Fn(Life) -> bool) {
        loop {
            let mut changed = pin!(self.state.1.notified());
            changed.as_mut().enable();
            if until(self.life()) {
                return;
            }
            changed.await;
        }
    }
}

/// An operation of a process.
pub(super) struct Watch<F: FnMut()> {
    /// The process.
    process: Process,
    /// Is called if the process dies before the end.
    dropped: Option<F>,
}

impl<F: FnMut()> Watch<F> {
    /// The operation is over.
    pub fn over(mut self) {
        self.dropped = None;
    }
}

impl<F: FnMut()> Drop for Watch<F> {
    fn drop(&mut self) {
        if let Some(dropped) = &mut self.dropped
            && self.process.life() == Life::Dead
        {
            dropped();
        }
    }
}
