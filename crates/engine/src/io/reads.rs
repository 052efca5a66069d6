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
        let Self { reader, events, tasks } = self.clone();
        tasks.start(
            TaskName::Read,
            Box::pin(async move {
                let PrefetchRequest { topic, after, limit, max_bytes } = request;
                let rows = reader.ready(topic, after, limit, max_bytes).await;
                events.send(ShardEvent::Prefetched { topic, read, rows });
            }),
        );
    }

    /// Reads the bodies of items.
    pub fn bodies(&self, read: u64, seqs: Vec<Seq>) {
        let Self { reader, events, tasks } = self.clone();
        tasks.start(
            TaskName::Read,
            Box::pin(async move {
                let bodies = reader.bodies(&seqs).await;
                events.send(ShardEvent::Bodies { read, bodies });
            }),
        );
    }

    /// Scans for a sweep.
    pub fn scan(&self, read: u64, request: ScanRequest) {
        let Self { reader, events, tasks } = self.clone();
        tasks.start(
            TaskName::Read,
            Box::pin(async move {
                let ScanRequest { sweep, from, to, limit } = request;
                let found = async {
                    let rows = reader.due(sweep, from, to, limit).await?;
                    let next = if rows.is_empty() { reader.next_due(sweep, to).await? } else { None };
                    Ok(ScanResult { rows, next })
                };
                let found = found.await;
                events.send(ShardEvent::Scanned { sweep, read, found });
            }),
        );
    }

    /// Looks dedupe keys up.
    pub fn dedupe(&self, read: u64, generations: Vec<u64>, hashes: Vec<KeyHash>) {
        let Self { reader, events, tasks } = self.clone();
        tasks.start(
            TaskName::Read,
            Box::pin(async move {
                let hits = reader.dedupe(&generations, &hashes).await;
                events.send(ShardEvent::DedupeHits { read, hits });
            }),
        );
    }

    /// Finds out where items are whose deliveries are over.
    pub fn locate(&self, read: u64, seqs: Vec<Seq>) {
        let Self { reader, events, tasks } = self.clone();
        tasks.start(
            TaskName::Read,
            Box::pin(async move {
                let locations = reader.locate(&seqs).await;
                events.send(ShardEvent::ItemsLocated { read, locations });
            }),
        );
    }
}
