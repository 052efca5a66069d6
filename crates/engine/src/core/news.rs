//! News for other nodes, one of each topic, and the ways on which they are sent.

use forebay_types::TopicName;
use tokio::sync::mpsc;

use super::topic_turns::TopicTurns;

/// News of one message.
const MESSAGE_MAX: usize = 512;
/// News that are sent in one turn, to all nodes together. Each node that has some gets its part.
const SENT_PER_TURN: usize = 1_024;

/// News for a node that were not sent yet, in turn by tenant.
#[derive(Debug)]
pub(crate) struct NewsQueue<N> {
    /// The newest of each topic.
    untold: TopicTurns<N>,
    /// The way to the node.
    way: mpsc::Sender<Vec<N>>,
}

impl<N> NewsQueue<N> {
    /// There are none yet.
    pub fn new(way: mpsc::Sender<Vec<N>>) -> Self {
        Self { untold: TopicTurns::default(), way }
    }

    /// The node is to be told this of a topic, and nothing that was said before it.
    pub fn insert(&mut self, name: TopicName, news: N) {
        self.untold.insert(name, news);
    }

    /// Takes what the node was not told yet of a topic.
    pub fn remove(&mut self, name: &TopicName) -> Option<N> {
        self.untold.remove(name)
    }

    /// There are some, and a node to be told.
    fn has_news(&self) -> bool {
        !self.untold.is_empty() && !self.way.is_closed()
    }

    /// Sends so many at most, if there is room for them.
    fn send(&mut self, mut most: usize) {
        while most > 0
            && !self.untold.is_empty()
            && let Ok(room) = self.way.try_reserve()
        {
            let next = std::iter::from_fn(|| self.untold.next()).map(|(_, news)| news);
            let message: Vec<N> = next.take(most.min(MESSAGE_MAX)).collect();
            most -= message.len();
            room.send(message);
        }
    }
}

/// Sends as much as there is room for, and as one turn may take. Returns whether something is left.
pub(crate) fn send<'a, N: 'a>(queues: impl Iterator<Item = &'a mut NewsQueue<N>>) -> bool {
    let mut queues: Vec<_> = queues.filter(|queue| queue.has_news()).collect();
    let most = SENT_PER_TURN.div_ceil(queues.len().max(1));
    queues.iter_mut().for_each(|queue| queue.send(most));
    queues.iter().any(|queue| queue.has_news())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue with so many news of a tenant, and what is sent.
    fn queue(tenant: &str, count: usize) -> (NewsQueue<usize>, mpsc::Receiver<Vec<usize>>) {
        let (way, sent) = mpsc::channel(16);
        let mut queue = NewsQueue::new(way);
        (0..count).for_each(|number| queue.insert(TopicName::new(tenant, format!("t{number:05}")), number));
        (queue, sent)
    }

    fn sizes(sent: &mut mpsc::Receiver<Vec<usize>>) -> Vec<usize> {
        std::iter::from_fn(|| sent.try_recv().ok()).map(|message| message.len()).collect()
    }

    #[test]
    fn a_turn_sends_so_many_and_each_node_gets_its_part() {
        let (mut one, mut sent) = queue("ns", 10_000);
        assert!(send([&mut one].into_iter()));
        assert_eq!(sizes(&mut sent), [512, 512]);
        let (mut other, mut sent_to_other) = queue("ns", 100);
        assert!(send([&mut one, &mut other].into_iter()));
        assert_eq!((sizes(&mut sent), sizes(&mut sent_to_other)), (vec![512], vec![100]));
        assert!(send([&mut one, &mut other].into_iter()));
        assert_eq!(sizes(&mut sent), [512, 512], "the other has none");
    }

    #[test]
    fn a_tenant_with_one_topic_is_in_the_first_message() {
        let (mut queue, mut sent) = queue("many", 10_000);
        queue.insert(TopicName::new("zero", "t"), usize::MAX);
        send([&mut queue].into_iter());
        assert!(sent.try_recv().unwrap().contains(&usize::MAX));
    }

    #[test]
    fn news_wait_for_room_and_for_nobody_once_the_way_is_closed() {
        let (mut queue, mut sent) = queue("ns", 100_000);
        while send([&mut queue].into_iter()) && sent.len() < 16 {}
        assert!(send([&mut queue].into_iter()), "there is no room");
        assert_eq!(sizes(&mut sent), [512; 16]);
        drop(sent);
        assert!(!send([&mut queue].into_iter()));
    }
}
