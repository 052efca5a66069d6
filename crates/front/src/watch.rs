//! Listens to what other nodes tell of their shards, and tells the engine.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use forebay_engine::{Engine, PeerNews, TaskName, Tasks};
use futures_util::{Stream, StreamExt as _};
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::links::{Links, WatchError};

/// A node that has told nothing for so long is asked anew: nodes report four times a second.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// The pause before a node that was not reached, or fell silent, is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// The same for a node of an earlier release.
const PAUSE_OLDER: Duration = Duration::from_secs(5);

/// The tasks that listen to other nodes, by address. They end with it.
#[derive(Default)]
struct NodeWatches(HashMap<String, AbortHandle>);

impl Drop for NodeWatches {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// Listens to all other nodes that live. `nodes`: their addresses, each time these may have changed. Ends
/// with that.
pub async fn watch_nodes(
    engine: Engine,
    links: Arc<dyn Links>,
    tasks: Arc<dyn Tasks>,
    nodes: impl Stream<Item = Vec<String>> + Send,
) {
    let mut nodes = pin!(nodes);
    let (mut watched, mut told) = (NodeWatches::default(), None);
    while let Some(living) = nodes.next().await {
        if told.as_ref() == Some(&living) {
            continue;
        }
        let mut gone = std::mem::take(&mut watched);
        for node in &living {
            let begin = || {
                let task = watch(engine.clone(), links.clone(), node.clone());
                tasks.start(TaskName::Watch, Box::pin(task))
            };
            watched.0.insert(node.clone(), gone.0.remove(node).unwrap_or_else(begin));
        }
        told = Some(living.clone());
        engine.take_in(PeerNews::Nodes(living));
    }
}

/// Listens to one node. The log says once that it tells nothing, and once that it does again.
async fn watch(engine: Engine, links: Arc<dyn Links>, node: String) {
    let (mut told, mut said) = (false, None);
    loop {
        let (why, pause) = match links.watch(&node).await {
            Ok(mut reports) => {
                while let Ok(Some(loads)) = timeout(SILENT_AFTER, reports.next()).await {
                    if said.take().is_some() {
                        tracing::info!("the node at {node} tells the load of its shards again");
                    }
                    told = true;
                    engine.take_in(PeerNews::Loads { node: node.clone(), loads });
                }
                ("the connection broke, or it fell silent", PAUSE)
            }
            Err(WatchError::Older) => {
                engine.take_in(PeerNews::Older(node.clone()));
                ("its program is of an earlier release", PAUSE_OLDER)
            }
            Err(WatchError::Unreached) => ("it is not reached", PAUSE),
        };
        // A node that starts is not reached at first.
        if said.is_none() && (told || pause == PAUSE_OLDER) {
            tracing::warn!("the node at {node} does not tell the load of its shards: {why}");
            said = Some(why);
        }
        sleep(pause).await;
    }
}
