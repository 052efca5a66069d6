//! A system that is measured: a queue that takes items from producers and delivers them to consumers.

pub mod access;
pub mod baseline;
pub mod forebay;
pub mod nodes;
pub mod server;

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;

use self::access::Access;
use crate::database::Database;

/// The configuration of a system.
#[derive(Debug, Clone)]
pub struct SystemConfig {
    /// Number of topics; they are numbered from 0.
    pub topics: u32,
    /// Number of priorities; they are numbered from 0, the most urgent.
    pub priorities: u8,
    /// Number of shards, if the system has shards.
    pub shards: u32,
    /// Bytes per payload.
    pub item_bytes: usize,
    /// Buffer pool of a database server, in MiB.
    pub pool_mib: u32,
    /// Additional flags of a database server. With any of them, commits may be less durable than usual.
    pub server_flags: Vec<String>,
    /// Whether a database server records its time by statement, which slows it down a little.
    pub by_statement: bool,
    /// Where items are stored, if the system can choose.
    pub database: Database,
    /// The forebay program to measure.
    pub forebay: PathBuf,
    /// How many nodes of it. Several need a database server.
    pub nodes: u32,
    /// Which of them clients call.
    pub access: Access,
}

/// An item to enqueue.
#[derive(Debug, Clone)]
pub struct Item {
    /// Smaller is more urgent.
    pub priority: u8,
    /// The payload, made by [`crate::payload`].
    pub payload: Bytes,
    /// Earliest delivery; `None`: at once.
    pub due: Option<SystemTime>,
}

/// A delivered item.
#[derive(Debug)]
pub struct BenchDelivery {
    /// The topic that it was delivered from.
    pub topic: u32,
    /// The payload as received.
    pub payload: Bytes,
}

/// Meaning of an OK to an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The item is on disk.
    OnDisk,
    /// The item will soon be on disk.
    SoonOnDisk,
}

impl Durability {
    /// As shown in reports.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OnDisk => "on disk",
            Self::SoonOnDisk => "soon on disk",
        }
    }
}

/// The order in which a queue delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By priority, then by age.
    Priority,
    /// By age: some other queues have no priorities.
    #[cfg(any(feature = "rabbitmq", feature = "nats", test))]
    Fifo,
}

/// A process whose CPU time and memory are measured, and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRole {
    /// `node`, `database` or `broker`.
    pub role: &'static str,
    /// The process id. Its children are measured with it.
    pub pid: u32,
}

/// A running queue, which is empty at first. Dropping it stops its processes and removes its data.
#[async_trait]
pub trait System: Send + Sync {
    /// Returns the meaning of an OK to an enqueue.
    fn durability(&self) -> Durability;

    /// The order in which items are delivered.
    fn order(&self) -> Order;

    /// Whether one `take` is one answer of the queue, in delivery order. If not, it is what the queue has
    /// pushed so far, and more urgent items may have arrived since.
    fn batches_are_ordered(&self) -> bool;

    /// The processes of the system.
    fn processes(&self) -> Vec<ProcessRole>;

    /// Version, and settings that affect speed or durability, as names and values.
    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>>;

    /// Returns when enqueued items cause no more work: a database may still have to write pages to disk.
    async fn flush(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Connects a producer. It has its own connection if users of the queue would have one.
    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>>;

    /// Connects a consumer of these topics. Several consumers may share a topic.
    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>>;
}

/// Enqueues items.
#[async_trait]
pub trait Producer: Send {
    /// Enqueues the items, all in `topic`. Returns when the queue has confirmed every one.
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()>;
}

/// Dequeues and acks items.
#[async_trait]
pub trait Consumer: Send {
    /// Returns up to `max` items in the order of their delivery. Waits for the first one, but no longer than
    /// `wait`; after that the result is empty.
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<BenchDelivery>>;

    /// Acks everything that the last `take` returned. Returns when the queue has confirmed the acks, if it
    /// confirms them at all.
    async fn ack(&mut self) -> anyhow::Result<()>;
}
