//! The other nodes that live, for those who listen to them.

use std::sync::Arc;

use futures_util::{Stream, stream::unfold};
use tokio::sync::watch::Receiver;

use crate::shared::ClusterState;

/// The addresses at which the other living nodes answer this one, each time the cluster has changed.
pub fn living_nodes(mut state: Receiver<Arc<ClusterState>>) -> impl Stream<Item = Vec<String>> + Send {
    // The state may be known already.
    state.mark_changed();
    unfold(state, |mut state| async move {
        state.changed().await.ok()?;
        let now = state.borrow_and_update().clone();
        let others = now.nodes.iter().filter(|node| node.live && node.name != now.own);
        Some((others.map(|node| node.peer_address.clone()).collect(), state))
    })
}
