//! What is measured: a queue that takes items from producers and hands them to consumers.

pub mod floor;
pub mod forebay;

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use bytes::Bytes;

use crate::database::Database;

/// What a started queue must be able to hold and to do.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The number of topics; they are numbered from 0.
    pub topics: u32,
    /// The number of priorities; they are numbered from 0, which goes first.
    pub priorities: u8,
    /// The number of shards, for those that have any.
    pub shards: u32,
    /// Bytes of a payload.
    pub item_bytes: usize,
    /// The buffer pool of a database server, in MiB.
    pub pool_mib: u32,
    /// Further flags of a database server. With any, commits may be less durable than they should be.
    pub server_flags: Vec<String>,
    /// Database servers take down where they spend their time, which costs them some.
    pub by_statement: bool,
    /// Where items that wait are kept, for those that can choose.
    pub database: Database,
    /// The program to measure.
    pub forebay: PathBuf,
}

/// One item on its way in.
#[derive(Debug, Clone)]
pub struct Item {
    /// Smaller goes first.
    pub priority: u8,
    /// What the queue carries; [`crate::payload`] makes it.
    pub payload: Bytes,
    /// Not to be delivered before; `None`: at once.
    pub due: Option<SystemTime>,
}

/// One item on its way out.
#[derive(Debug)]
pub struct Delivered {
    /// Where it waited.
    pub topic: u32,
    /// As it arrived.
    pub payload: Bytes,
}

/// What an OK to an enqueue means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// It is on disk.
    Disk,
    /// It will soon be on disk.
    Soon,
}

impl Promise {
    /// In words, for the table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Disk => "on disk",
            Self::Soon => "soon on disk",
        }
    }
}

/// In which order a queue promises to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// By priority, then by age.
    Priority,
    /// By age: it knows no priorities. Only some peers are so.
    #[cfg(any(feature = "rabbitmq", feature = "nats", test))]
    Age,
}

/// A process whose CPU time and memory are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// `node`, `database` or `broker`.
    pub role: &'static str,
    /// Its process id; its children count with it.
    pub pid: u32,
}

/// A running queue, with nothing in it when it is new. It ends, and its data goes, when it is dropped.
#[async_trait]
pub trait System: Send + Sync {
    /// What an OK means.
    fn promise(&self) -> Promise;

    /// The order in which items come out.
    fn order(&self) -> Order;

    /// Whether one `take` is one answer of the queue, in delivery order; else it is what has been pushed
    /// to the consumer so far, some of it before better items came.
    fn answers(&self) -> bool;

    /// The processes that it consists of.
    fn parts(&self) -> Vec<Part>;

    /// Version and settings that matter for speed and for what an OK means: name and value.
    async fn settings(&self) -> anyhow::Result<Vec<(String, String)>>;

    /// Returns once what has been put in so far costs nothing any more: a database may have pages in memory
    /// that it still has to write out.
    async fn settle(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// A producer, with a connection of its own where the queue's users would have that.
    async fn producer(&self) -> anyhow::Result<Box<dyn Producer>>;

    /// A consumer of these topics. Several consumers may share a topic.
    async fn consumer(&self, topics: Vec<u32>) -> anyhow::Result<Box<dyn Consumer>>;
}

/// Puts items in.
#[async_trait]
pub trait Producer: Send {
    /// Enqueues the items, all in `topic`, and returns when the queue has confirmed every one.
    async fn put(&mut self, topic: u32, items: Vec<Item>) -> anyhow::Result<()>;
}

/// Takes items out.
#[async_trait]
pub trait Consumer: Send {
    /// Up to `max` items, in the order of their delivery; waits for the first one, at most `wait`, and returns
    /// none after that.
    async fn take(&mut self, max: usize, wait: Duration) -> anyhow::Result<Vec<Delivered>>;

    /// Settles everything that the last `take` returned, and returns when the queue has confirmed that, if it
    /// ever does.
    async fn ack(&mut self) -> anyhow::Result<()>;
}
