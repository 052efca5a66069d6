//! The running task of a node in its cluster, for the node that stops it.

use std::time::Duration;

use tokio::sync::oneshot;

/// How long a node that leaves waits until others have its shards.
pub(crate) const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The running task of a node in its cluster.
pub struct ClusterTask {
    /// Asks the task to leave the cluster.
    pub(crate) leave: oneshot::Sender<LeaveMode>,
    /// Closed once the node has left.
    pub(crate) left: oneshot::Receiver<()>,
}

/// How a node leaves the cluster.
pub(crate) enum LeaveMode {
    /// Others get its shards, as far as that takes no longer.
    HandingOver(Duration),
    /// Its shards stay its own for the next start.
    WithAll,
}

impl ClusterTask {
    /// Leaves the cluster: others have the shards then, or the time is over.
    pub async fn leave(self, limit: Duration) {
        self.leave_so(LeaveMode::HandingOver(limit.min(LEAVE_TIMEOUT))).await;
    }

    /// Leaves the cluster as all of its nodes do. The shards stay assigned to this node: if the last one to
    /// leave had all of them, the others would be without any for half a minute after the next start.
    pub async fn leave_with_all(self) {
        self.leave_so(LeaveMode::WithAll).await;
    }

    async fn leave_so(self, how: LeaveMode) {
        let _ = self.leave.send(how);
        let _ = self.left.await;
    }
}
