//! Listens to what other nodes tell of their shards and topics, and tells the engine.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use forebay_engine::{Engine, PeerLink, PeerNews, Subscription, TaskName, Tasks};
use futures_util::{Stream, StreamExt as _, stream::poll_fn};
use tokio::{
    sync::mpsc::{Sender, channel},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::links::{Links, PeerReport, WatchError};

/// A node that has told nothing for so long is asked anew: nodes report four times a second.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// The pause before a node that was not reached, or fell silent, is asked again.
const PAUSE: Duration = Duration::from_millis(500);
/// The same for a node of an earlier release.
const PAUSE_OLDER: Duration = Duration::from_secs(5);

/// Messages with subscriptions that wait for the connection.
const SUBSCRIPTIONS_MAX: usize = 16;

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

/// Tells the engine what a node reports. `subscriptions`: the way back, until the engine has it.
fn take_in(
    engine: &Engine,
    node: &str,
    report: PeerReport,
    subscriptions: &mut Option<Sender<Vec<Subscription>>>,
) {
    let PeerReport { link, loads, heads } = report;
    if let Some(number) = link
        && let Some(subscriptions) = subscriptions.take()
    {
        let link = PeerLink { number, subscriptions };
        engine.take_in(PeerNews::Linked { node: node.to_owned(), link });
    }
    if let Some(loads) = loads {
        engine.take_in(PeerNews::Loads { node: node.to_owned(), loads });
    }
    if !heads.is_empty() {
        engine.take_in(PeerNews::Heads { node: node.to_owned(), heads });
    }
}

/// Listens to one node. The log says once that it tells nothing, and once that it does again.
async fn watch(engine: Engine, links: Arc<dyn Links>, node: String) {
    let (mut told, mut said) = (false, None);
    loop {
        let (sender, mut changes) = channel(SUBSCRIPTIONS_MAX);
        let subscriptions = poll_fn(move |context| changes.poll_recv(context)).boxed();
        let (why, pause) = match links.watch(&node, subscriptions).await {
            Ok(mut reports) => {
                let mut sender = Some(sender);
                while let Ok(Some(report)) = timeout(SILENT_AFTER, reports.next()).await {
                    if said.take().is_some() {
                        tracing::info!("the node at {node} tells of its shards again");
                    }
                    told = true;
                    take_in(&engine, &node, report, &mut sender);
                }
                engine.take_in(PeerNews::Unlinked(node.clone()));
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
            tracing::warn!("the node at {node} does not tell of its shards: {why}");
            said = Some(why);
        }
        sleep(pause).await;
    }
}
