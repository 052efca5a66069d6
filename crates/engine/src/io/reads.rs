//! Reads of a shard. Each is a task of its own, so a slow one delays no other.

use std::sync::Arc;

use forebay_store::{ErrorClass, Reader, StoreError};
use forebay_types::{Seq, State};

use super::keys;
use crate::{
    api::{TaskName, Tasks},
    messages::{
        event::ShardEvents,
        look_turn::LookTurn,
        shard::{ScanResult, ShardEvent},
    },
    shard::work::{
        FoundItem, KeyHash, OperationItem, OperationRead, Place, PrefetchRequest, ScanRequest, TalliesAfter,
        TalliesRequest, TallyRows, Walk,
    },
};

/// Reads what an operation goes through next.
async fn walk_page(reader: &dyn Reader, walk: Walk, limit: usize) -> Result<Vec<OperationItem>, StoreError> {
    match walk {
        Walk::Items { topic, is_scheduled, after, as_of, keeps_headers } => {
            let state = if is_scheduled { State::Scheduled } else { State::Ready };
            let rows = reader.walk_items(topic, state, after, as_of, limit).await?;
            let place = || if is_scheduled { Place::Scheduled } else { Place::Ready };
            let item = |row| OperationItem::of_row(topic, row, place(), keeps_headers);
            Ok(rows.into_iter().map(item).collect())
        }
        Walk::Dead { name, after, until } => {
            let rows = reader.walk_dead(&name, after, until, limit).await?;
            Ok(rows.into_iter().map(OperationItem::of_dead).collect())
        }
    }
}

/// Reads one shard and reports to the event loop.
#[derive(Clone)]
pub(crate) struct Reads {
    /// The shard's connections for reading.
    pub reader: Arc<dyn Reader>,
    /// Where results go.
    pub events: ShardEvents,
    /// Where it is said that the shard has to be taken anew.
    pub own: ShardEvents,
    /// Runs the reads.
    pub tasks: Arc<dyn Tasks>,
    /// The turn of the looks at the shard for operators.
    pub look_turn: Arc<LookTurn>,
}

impl Reads {
    /// Reads one shard and reports to the event loop through `events`.
    pub fn new(reader: Arc<dyn Reader>, events: ShardEvents, tasks: Arc<dyn Tasks>) -> Self {
        Self { reader, own: events.clone(), events, tasks, look_turn: Arc::default() }
    }

    /// The same connections, with results in another shard's name.
    pub fn reporting_to(&self, events: ShardEvents) -> Self {
        Self { events, ..self.clone() }
    }

    /// Reads a topic's next ready items.
    pub fn prefetch(&self, read: u64, request: PrefetchRequest) {
        let PrefetchRequest { topic, after, limit, max_bytes } = request;
        self.start(
            move |reader| async move { reader.ready(topic, after, limit, max_bytes).await },
            move |rows| ShardEvent::Prefetched { topic, read, rows },
        );
    }

    /// Reads the bodies of items.
    pub fn bodies(&self, read: u64, seqs: Vec<Seq>) {
        self.start(
            move |reader| async move { reader.bodies(&seqs).await },
            move |bodies| ShardEvent::Bodies { read, bodies },
        );
    }

    /// Scans for a sweep.
    pub fn scan(&self, read: u64, request: ScanRequest) {
        let ScanRequest { sweep, from, to, limit } = request;
        self.start(
            move |reader| async move {
                let rows = reader.due(sweep, from, to, limit).await?;
                let next = if rows.is_empty() { reader.next_due(sweep, to).await? } else { None };
                Ok(ScanResult { rows, next })
            },
            move |found| ShardEvent::Scanned { sweep, read, found },
        );
    }

    /// Looks dedupe keys up.
    pub fn dedupe(&self, read: u64, generations: Vec<u64>, hashes: Vec<KeyHash>) {
        self.start(
            move |reader| async move { keys::look_up(&*reader, &generations, &hashes).await },
            move |hits| ShardEvent::DedupeHits { read, hits },
        );
    }

    /// Reads a page for an operation.
    pub fn operation(&self, read: u64, request: OperationRead) {
        let OperationRead { walk, limit } = request;
        self.start(
            move |reader| async move { walk_page(&*reader, walk, limit).await },
            move |items| ShardEvent::OperationRead { read, items },
        );
    }

    /// Reads tallies of topics.
    pub fn tallies(&self, read: u64, request: TalliesRequest) {
        let TalliesRequest { after, limit } = request;
        self.start(
            move |reader| async move {
                Ok(match after {
                    TalliesAfter::Topic(topic) => TallyRows::Topics(reader.tallies(topic, limit).await?),
                    TalliesAfter::Namespace(name) => {
                        TallyRows::Namespaces(reader.namespace_tallies(&name, limit).await?)
                    }
                })
            },
            move |rows| ShardEvent::TalliesRead { read, rows },
        );
    }

    /// Reads items that are to be changed.
    pub fn changes(&self, read: u64, seqs: Vec<Seq>) {
        self.start(
            move |reader| async move {
                let items = reader.items(&seqs, 0).await?;
                Ok(items.into_iter().map(FoundItem::from).collect())
            },
            move |items| ShardEvent::ChangesRead { read, items },
        );
    }

    /// Finds out where items are whose deliveries are over.
    pub fn locate(&self, read: u64, seqs: Vec<Seq>) {
        self.start(
            move |reader| async move { reader.locate(&seqs).await },
            move |locations| ShardEvent::ItemsLocated { read, locations },
        );
    }

    /// Starts a read. What it returns is reported.
    fn start<T, F>(
        &self,
        read: impl FnOnce(Arc<dyn Reader>) -> F,
        event: impl FnOnce(Result<T, StoreError>) -> ShardEvent + Send + 'static,
    ) where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (events, own, read) = (self.events.clone(), self.own.clone(), read(self.reader.clone()));
        let reading = async move {
            let result = read.await;
            let not_primary = result.as_ref().is_err_and(|error| error.class == ErrorClass::NotPrimary);
            events.send(event(result));
            if not_primary {
                own.send(ShardEvent::NotPrimary);
            }
        };
        self.tasks.start(TaskName::Read, Box::pin(reading));
    }
}
