//! Where the engine's tasks run.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
};

use forebay_types::ShardId;
use tokio::{sync::watch, task::AbortHandle};

/// Which task it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskName {
    /// The event loop.
    EventLoop,
    /// Commits a shard's batches.
    Shard(ShardId),
    /// Renews the claim on a shard.
    Renewals(ShardId),
    /// Looks at the settings of a shard's server.
    ServerSettings(ShardId),
    /// Reads what can be read of a shard before it is taken over.
    ReadAhead(ShardId),
    /// One read of a shard.
    Read,
    /// Leases items at another node, or returns them.
    Fetch,
    /// The node's part in its cluster. The engine does not start it.
    Membership,
    /// Asks other nodes whether they are there. The engine does not start it.
    PeerReach,
    /// Tells other nodes that the catalog has changed. The engine does not start it.
    Notices,
    /// Listens to other nodes, or to one of them. The engine does not start it.
    Watch,
}

/// The future that a task runs.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs the tasks of the engine and of membership. Neither starts a task elsewhere. So who implements this
/// has them all, and may end them at any await, as the death of the process does.
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

/// Runs tasks elsewhere, and tells of one that panics: the engine cannot go on without it.
pub(crate) struct TaskSupervisor {
    /// Where they run.
    tasks: Arc<dyn Tasks>,
    /// Receives what the first panic said.
    failed: Arc<watch::Sender<Option<String>>>,
}

impl TaskSupervisor {
    /// Runs tasks there. Returns also where the first panic is told.
    pub fn new(tasks: Arc<dyn Tasks>) -> (Self, watch::Receiver<Option<String>>) {
        let (failed, receiver) = watch::channel(None);
        (Self { tasks, failed: Arc::new(failed) }, receiver)
    }
}

impl Tasks for TaskSupervisor {
    fn start(&self, name: TaskName, mut task: Task) -> AbortHandle {
        let failed = self.failed.clone();
        let supervised = async move {
            let ended =
                poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
                    Ok(poll) => poll.map(Ok),
                    Err(panic) => Poll::Ready(Err(panic)),
                });
            let Err(panic) = ended.await else { return };
            let what = format!("{name:?}: {}", said(panic.as_ref()));
            tracing::error!("a task of the engine panicked: {what}; the process ends; report this as a bug");
            failed.send_if_modified(|failed| failed.is_none() && failed.replace(what).is_none());
            resume_unwind(panic);
        };
        self.tasks.start(name, Box::pin(supervised))
    }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
