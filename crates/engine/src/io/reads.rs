//! Reads of a shard. Each is a task of its own, so a slow one delays no other.

use std::sync::Arc;

use forebay_store::Reader;
use forebay_types::Seq;

use crate::{
    api::{TaskName, Tasks},
    messages::{
        event::ShardEvents,
        shard::{ScanResult, ShardEvent},
    },
    shard::work::{KeyHash, PrefetchRequest, ScanRequest},
};

/// Reads one shard and reports to the event loop.
#[derive(Clone)]
pub(crate) struct Reads {
    /// The shard's connections for reading.
    pub reader: Arc<dyn Reader>,
    /// Where results go.
    pub events: ShardEvents,
    /// Runs the reads.
    pub tasks: Arc<dyn Tasks>,
}

impl Reads {
    /// The same connections, with results in another shard's name.
    pub fn reporting_to(&self, events: ShardEvents) -> Self {
        Self { events, ..self.clone() }
    }

    /// Reads a topic's next ready items.
    pub fn prefetch(&self, read: u64, request: PrefetchRequest) {
        self.start(move |reader| async move {
            let PrefetchRequest { topic, after, limit, max_bytes } = request;
            let rows = reader.ready(topic, after, limit, max_bytes).await;
            ShardEvent::Prefetched { topic, read, rows }
        });
    }

    /// Reads the bodies of items.
    pub fn bodies(&self, read: u64, seqs: Vec<Seq>) {
        self.start(move |reader| async move {
            let bodies = reader.bodies(&seqs).await;
            ShardEvent::Bodies { read, bodies }
        });
    }

    /// Scans for a sweep.
    pub fn scan(&self, read: u64, request: ScanRequest) {
        self.start(move |reader| async move {
            let ScanRequest { sweep, from, to, limit } = request;
            let found = async {
                let rows = reader.due(sweep, from, to, limit).await?;
                let next = if rows.is_empty() { reader.next_due(sweep, to).await? } else { None };
                Ok(ScanResult { rows, next })
            };
            let found = found.await;
            ShardEvent::Scanned { sweep, read, found }
        });
    }

    /// Looks dedupe keys up.
    pub fn dedupe(&self, read: u64, generations: Vec<u64>, hashes: Vec<KeyHash>) {
        self.start(move |reader| async move {
            let hits = reader.dedupe(&generations, &hashes).await;
            ShardEvent::DedupeHits { read, hits }
        });
    }

    /// Finds out where items are whose deliveries are over.
    pub fn locate(&self, read: u64, seqs: Vec<Seq>) {
        self.start(move |reader| async move {
            let locations = reader.locate(&seqs).await;
            ShardEvent::ItemsLocated { read, locations }
        });
    }

    /// Starts a read. What it returns is reported.
    fn start<F>(&self, read: impl FnOnce(Arc<dyn Reader>) -> F)
    where
        F: Future<Output = ShardEvent> + Send + 'static,
    {
        let (events, read) = (self.events.clone(), read(self.reader.clone()));
        self.tasks.start(TaskName::Read, Box::pin(async move { events.send(read.await) }));
    }
}
