//! A consumer that runs a handler on the items of its topics.

mod config;
mod delivery;
mod handlers;
mod lanes;
mod open_deliveries;
mod poll;
mod report;
mod settle;

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle};
use tonic::Code;

use crate::{client::Client, error::Error};
pub use config::ConsumerConfig;
pub use delivery::{Delivery, Handler, Outcome};
pub use report::ConsumerReport;

/// A running consumer. Dropping it stops it in the background.
#[derive(Debug)]
pub struct Consumer {
    /// Becomes true to stop the consumer.
    stop: watch::Sender<bool>,
    /// Ends with the report.
    task: JoinHandle<Result<ConsumerReport, Error>>,
}

impl Consumer {
    /// Starts a consumer. Must be called inside a Tokio runtime.
    pub fn start(client: Client, config: ConsumerConfig, handler: impl Handler) -> Self {
        let (stop, stopped) = watch::channel(false);
        let config = ConsumerConfig {
            concurrency: config.concurrency.clamp(1, 100_000),
            lease: config.lease.max(Duration::from_millis(100)),
            ..config
        };
        Self { stop, task: tokio::spawn(poll::run(client, config, Arc::new(handler), stopped)) }
    }

    /// Dequeues no more items, waits for running handlers, releases items that were not started, settles all
    /// deliveries, and reports what was done. Fails if the consumer ended before ([`Consumer::ended`]).
    pub async fn stop(self) -> Result<ConsumerReport, Error> {
        self.stop.send_replace(true);
        self.ended().await
    }

    /// Waits until the consumer ends by itself. It does so only if the server refuses a dequeue with an error
    /// that is not transient (an invalid topic, no access).
    pub async fn ended(self) -> Result<ConsumerReport, Error> {
        match self.task.await {
            Ok(end) => end,
            Err(error) => Err(Error::local(Code::Internal, format!("the consumer's task failed: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_several;
