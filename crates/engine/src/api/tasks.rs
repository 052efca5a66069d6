//! Where the engine's tasks run.

use std::pin::Pin;

use forebay_types::ShardId;
use tokio::task::AbortHandle;

/// Which task it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskName {
    /// The event loop.
    EventLoop,
    /// Commits a shard's batches.
    Shard(ShardId),
    /// Renews the claim on a shard.
    Renewals(ShardId),
    /// One read of a shard.
    Read,
}

/// What a task does.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the engine's tasks. The engine starts no task elsewhere. So who implements this has them all, and may
/// end them at any await, as the death of the process does.
pub trait Tasks: Send + Sync + 'static {
    /// Starts a task.
    fn start(&self, name: TaskName, task: Task) -> AbortHandle;
}

/// On the current runtime.
impl Tasks for () {
    fn start(&self, _name: TaskName, task: Task) -> AbortHandle {
        tokio::spawn(task).abort_handle()
    }
}
