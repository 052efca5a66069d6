//! A consumer that runs a handler over what topics hold.

mod delivery;
mod in_hand;
mod poll;
mod settle;
mod work;

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};
use tonic::Code;

use crate::{Client, Error};
pub use delivery::{Delivery, Handler, Outcome};

/// What a consumer takes and how much at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerConfig {
    /// The topics; at most 100 of them. Each asks for an equal share of the free places.
    pub topics: Vec<String>,
    /// Handlers that run at a time. With several topics up to one item less than there are topics may be
    /// held beyond it; their leases are kept alive too.
    pub concurrency: usize,
    /// How long a poll waits for items; at most 20 s.
    pub wait: Duration,
    /// The lease of every delivery, whatever the item says; extended at a third of it for as long as its
    /// handler runs. A consumer that dies leaves its items to others after this time.
    pub lease: Duration,
    /// Who asks, for operators; may be empty.
    pub name: String,
    /// How long handlers may still run after [`Consumer::stop`]; then they are cut off and their items
    /// released.
    pub stop_grace: Duration,
}

impl ConsumerConfig {
    /// 16 handlers at a time, leases of 30 s.
    pub fn new<T: Into<String>>(topics: impl IntoIterator<Item = T>) -> Self {
        Self {
            topics: topics.into_iter().map(Into::into).collect(),
            concurrency: 16,
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

    /// The same with another lease.
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }
}

/// What a consumer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConsumerReport {
    /// Items that are done: acked, or handled at most once.
    pub acked: u64,
    /// Items that failed and come back.
    pub retried: u64,
    /// Items sent to the dead letters.
    pub rejected: u64,
    /// Items given back unhandled.
    pub released: u64,
    /// Deliveries that were over before they were settled: their items may be handled again.
    pub lost: u64,
    /// Deliveries whose end could not be told to the server: their items come back when the lease ends,
    /// unless it was told after all.
    pub unsettled: u64,
}

/// A running consumer. Dropping it stops it too, in the background.
#[derive(Debug)]
pub struct Consumer {
    stop: watch::Sender<bool>,
    task: JoinHandle<Result<ConsumerReport, Error>>,
}

impl Consumer {
    /// Starts one; must be called inside a Tokio runtime.
    pub fn start(client: Client, config: ConsumerConfig, handler: impl Handler) -> Self {
        let (stop, stopped) = watch::channel(false);
        let config = ConsumerConfig {
            concurrency: config.concurrency.clamp(1, 100_000),
            lease: config.lease.max(Duration::from_millis(100)),
            ..config
        };
        Self { stop, task: tokio::spawn(poll::run(client, config, Arc::new(handler), stopped)) }
    }

    /// Takes no more items, lets the handlers at work finish, releases what had not begun, tells the server,
    /// and says what was done. Fails if the consumer had ended by itself ([`Consumer::ended`]).
    pub async fn stop(self) -> Result<ConsumerReport, Error> {
        self.stop.send_replace(true);
        self.ended().await
    }

    /// Waits until the consumer ends by itself, which it does only when the server refuses its polls for good
    /// (a wrong topic, no access).
    pub async fn ended(self) -> Result<ConsumerReport, Error> {
        match self.task.await {
            Ok(end) => end,
            Err(error) => Err(Error::local(Code::Internal, format!("the consumer broke: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests;
