//! A node's memory for unit tests.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_types::{Clock, Monotonic, ShardId, SystemClock, Timestamp, Topic};
use rand::{SeedableRng, rngs::StdRng};
use tokio::sync::{mpsc::unbounded_channel, oneshot, watch};

use super::{
    Core,
    health::Health,
    polls::Poll,
    slot::{Slot, Slots},
};
use crate::{
    api::{Demand, DequeueCall, Served, Settings},
    clock::NodeTime,
    index::ServerIndex,
};

/// A clock at which each look takes a millisecond.
#[derive(Default)]
pub(crate) struct SlowClock(AtomicU64);

impl Clock for SlowClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(0)
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(self.0.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Core {
    /// With one shard, which the node does not own.
    pub fn for_test() -> Self {
        Self::for_test_with(Arc::new(SystemClock::default()))
    }

    /// The same with this clock.
    pub fn for_test_with(clock: Arc<dyn Clock>) -> Self {
        let time = NodeTime::new(clock);
        let health = Health::new(ShardId(1), "db1:3306".into(), time.monotonic());
        let slot = Slot::new(ShardId(1), ServerIndex(0), health, unbounded_channel().0);
        let rng = StdRng::seed_from_u64(1);
        let (events, served) = (unbounded_channel().0, watch::channel(Served::default()).0);
        let slots = Slots::new(vec![slot]);
        Self::new(Settings::default(), time, rng, slots, events, Arc::default(), served)
    }

    /// A poll of one topic, whose caller is gone. So it is forgotten as soon as it is looked at.
    pub fn add_poll(&mut self, id: u64, topic: Topic, deadline: Monotonic) {
        let (namespace, consumer) = ("ns".into(), String::new());
        let demands = vec![Demand { topic, max_items: 1 }];
        let wait = Duration::from_secs(60);
        let call = DequeueCall { namespace, demands, wait, lease: None, consumer, max_bytes: 1 };
        self.polls.insert(id, Poll::new(call, oneshot::channel().0, deadline));
    }
}
