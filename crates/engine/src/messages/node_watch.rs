//! The owner's end of a link by which another node follows topics.

use tokio::sync::mpsc::{Receiver, UnboundedSender, channel};

use super::event::Event;
use crate::api::{Subscription, TopicHead};

/// Messages on the way to a node. Behind that the newest of each topic waits.
const MESSAGES_MAX: usize = 16;

/// The owner's end of a link. With it go the subscriptions.
#[derive(Debug)]
pub struct NodeWatch {
    /// Names the link.
    link: u64,
    /// The event loop's inbox.
    events: UnboundedSender<Event>,
    /// News for the other node.
    heads: Receiver<Vec<TopicHead>>,
}

impl NodeWatch {
    /// Nothing is followed yet.
    pub(crate) fn begin(link: u64, events: UnboundedSender<Event>) -> Self {
        let (sender, heads) = channel(MESSAGES_MAX);
        let _ = events.send(Event::WatchBegun { link, heads: sender });
        Self { link, events, heads }
    }

    /// The number of the link. The other node names it when it leases items.
    pub fn link(&self) -> u64 {
        self.link
    }

    /// The other node follows other topics, or wants other numbers of items.
    pub fn subscribe(&self, subscriptions: Vec<Subscription>) {
        let _ = self.events.send(Event::Subscribe { link: self.link, subscriptions });
    }

    /// The next news for the other node. `None`: the engine has stopped.
    pub async fn next(&mut self) -> Option<Vec<TopicHead>> {
        self.heads.recv().await
    }
}

impl Drop for NodeWatch {
    fn drop(&mut self) {
        let _ = self.events.send(Event::WatchEnded { link: self.link });
    }
}
