//! The engine's part of an orderly stop: no new work, what was accepted is committed and answered, the shards are
//! given up.

use tokio::sync::oneshot;

use crate::{
    core::Core,
    io::Task,
    planted::{Bug, on},
};

impl Core {
    pub fn stop(&mut self, reply: oneshot::Sender<()>) {
        self.stopping.get_or_insert_default().push(reply);
        let polls: Vec<u64> = self.polls.keys().copied().collect();
        for id in polls {
            self.answer_empty(id);
        }
    }

    /// Once everything accepted is committed and answered, the shards are given up.
    pub fn finish_stop(&mut self) {
        if self.stopping.is_none() {
            return;
        }
        if !self.released {
            let idle =
                self.shards.iter().all(|shard| shard.owned.as_ref().is_none_or(|owned| owned.is_idle()));
            // An answer may need no more than a look at the store: where the item of a lost lease is.
            let answered = self.polls.is_empty() && self.calls.is_empty();
            if (!idle || !answered) && !on(Bug::StopHasty) {
                return;
            }
            self.released = true;
            for shard in &self.shards {
                let _ = shard.tasks.send(Task::Release);
            }
        }
        if self.has_stopped() {
            for reply in self.stopping.take().into_iter().flatten() {
                let _ = reply.send(());
            }
            self.stopping = Some(Vec::new());
        }
    }

    pub fn has_stopped(&self) -> bool {
        self.released && self.shards.iter().all(|shard| shard.state == "stopped")
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }
}
