//! How a consumer is configured.

use std::time::Duration;

/// Settings of a consumer: what it dequeues, and how much at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// The topics, at most 100. One that ends in `*` stands for all that begin so, as in
    /// [`Demand`](crate::Demand). Each is asked for an equal share of the free handler slots.
    pub topics: Vec<String>,
    /// Handlers that run at a time. With n topics and m servers the consumer may hold more items, whose
    /// leases it extends too: up to n - 1 with one server, none with several if this is at least n · m, and
    /// otherwise up to m · (n - 1).
    pub concurrency: usize,
    /// At most this many items are taken in all, and never more are leased. Then the consumer waits to be
    /// stopped. It asks for one topic at a time while there are fewer to take than topics. `None`: no limit.
    pub max_items: Option<usize>,
    /// The consumer ends by itself once nothing came and nothing ran for so long, and all servers have said
    /// meanwhile that they have no items. Those that do not answer count once another one does. `None`:
    /// never.
    pub idle_exit: Option<Duration>,
    /// How long a poll waits for items; at most 20 s.
    pub wait: Duration,
    /// The lease of every delivery; it replaces the items' own. It is extended after a third of it, for as
    /// long as the handler runs. If the consumer dies, others get its items after this time.
    pub lease: Duration,
    /// The consumer's name, for operators; may be empty.
    pub name: String,
    /// How long handlers may still run after `Consumer::stop`. Then they are aborted and their items are
    /// released.
    pub stop_grace: Duration,
}

impl ConsumerConfig {
    /// 16 handlers at a time, leases of 30 s.
    pub fn new<T: Into<String>>(topics: impl IntoIterator<Item = T>) -> Self {
        Self {
            topics: topics.into_iter().map(Into::into).collect(),
            concurrency: 16,
            max_items: None,
            idle_exit: None,
            wait: Duration::from_secs(20),
            lease: Duration::from_secs(30),
            name: String::new(),
            stop_grace: Duration::from_secs(10),
        }
    }

    /// The same with another number of handlers at a time.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }

    /// The same, taking so many items in all.
    pub fn max_items(self, max_items: usize) -> Self {
        Self { max_items: Some(max_items), ..self }
    }

    /// The same with another lease.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }
}
