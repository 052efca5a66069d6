//! A producer that enqueues all the time.

use std::{
    sync::mpsc::{self, Receiver, Sender, TryRecvError},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context as _;

use super::{
    queue::{Outcome, Queue},
    stack::Container,
};

/// Items of a call.
const CALL_ITEMS: usize = 50;
/// How long a call may take. The command line gives up much sooner.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The answer to each item of a call.
type Outcomes = Vec<(String, Outcome)>;

/// A thread that enqueues until it is stopped.
pub struct Producer {
    /// Dropped, it ends the thread.
    stop: Sender<()>,
    /// The calls that were answered.
    answered: Receiver<anyhow::Result<Outcomes>>,
    /// Outcomes that were received from there.
    outcomes: Vec<Outcomes>,
    /// The thread.
    thread: JoinHandle<()>,
}

impl Producer {
    /// Starts it in the container `at`; it calls the first of `nodes` that answers.
    pub fn start(at: Container, nodes: Vec<Container>) -> Self {
        let (stop, stopped) = mpsc::channel::<()>();
        let (answers, answered) = mpsc::channel();
        let thread = thread::spawn(move || {
            for call in 0.. {
                if stopped.try_recv() == Err(TryRecvError::Disconnected) {
                    return;
                }
                let payloads: Vec<_> =
                    (0..CALL_ITEMS).map(|number| format!("call {call} item {number}")).collect();
                if answers.send(Queue::at(&at).enqueue(&nodes, &payloads)).is_err() {
                    return;
                }
            }
        });
        Self { stop, answered, outcomes: Vec::new(), thread }
    }

    /// Waits until so many more calls were answered with items that are stored.
    pub fn wait_for_calls(&mut self, calls: usize) -> anyhow::Result<()> {
        // Calls that were answered before do not count.
        while let Ok(outcomes) = self.answered.try_recv() {
            self.outcomes.push(outcomes?);
        }
        let mut left = calls;
        while left > 0 {
            let outcomes = self.answered.recv_timeout(CALL_TIMEOUT).context("no call was answered")??;
            left -= usize::from(outcomes.iter().any(|(_, outcome)| *outcome == Outcome::Done));
            self.outcomes.push(outcomes);
        }
        Ok(())
    }

    /// Ends it; returns what became of all of its items.
    pub fn stop(mut self) -> anyhow::Result<Vec<Outcomes>> {
        drop(self.stop);
        self.thread.join().map_err(|_| anyhow::anyhow!("the producer panicked"))?;
        for outcomes in self.answered.try_iter() {
            self.outcomes.push(outcomes?);
        }
        Ok(self.outcomes)
    }
}
