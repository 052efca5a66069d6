//! The other nodes that live, for those who listen to them.

use std::sync::Arc;

use futures_util::{Stream, stream::unfold};
use tokio::sync::watch::Receiver;

use crate::shared::ClusterState;

/// The addresses at which the other living nodes answer this one, each time they change.
pub fn living_nodes(mut state: Receiver<Arc<ClusterState>>) -> impl Stream<Item = Vec<String>> + Send {
    // The state may be known already.
    state.mark_changed();
    unfold((state, None), |(mut state, told): (_, Option<Vec<String>>)| async move {
        loop {
            let nodes = next(&mut state).await?;
            if told.as_ref() != Some(&nodes) {
                return Some((nodes.clone(), (state, Some(nodes))));
            }
        }
    })
}

/// Waits for a change of the state.
async fn next(state: &mut Receiver<Arc<ClusterState>>) -> Option<Vec<String>> {
    state.changed().await.ok()?;
    let state = state.borrow_and_update();
    let others = state.nodes.iter().filter(|node| node.live && node.name != state.own);
    Some(others.map(|node| node.peer_address.clone()).collect())
}
