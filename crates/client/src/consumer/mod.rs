//! A consumer that runs a handler on the items of its topics.

mod config;
mod delivery;
mod handlers;
mod idle;
mod lanes;
mod open_deliveries;
mod place;
mod poll;
mod report;
mod settle;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::{JoinError, JoinHandle},
};
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
    /// that is not transient (an invalid topic, no access), or once there is nothing to do
    /// ([`ConsumerConfig::idle_exit`]).
    pub async fn ended(self) -> Result<ConsumerReport, Error> {
        joined(self.task.await)
    }

    /// Waits for `stop`, and stops the consumer then, as [`Consumer::stop`] does. Ends earlier if the
    /// consumer ends by itself.
    pub async fn run_until(mut self, stop: impl Future<Output = ()>) -> Result<ConsumerReport, Error> {
        tokio::select! {
            end = &mut self.task => joined(end),
            () = stop => self.stop().await,
        }
    }
}

/// Report or error that the consumer's task has left.
fn joined(end: Result<Result<ConsumerReport, Error>, JoinError>) -> Result<ConsumerReport, Error> {
    end.unwrap_or_else(|error| {
        Err(Error::local(Code::Internal, format!("the consumer's task failed: {error}")))
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_idle;
#[cfg(test)]
mod tests_place;
#[cfg(test)]
mod tests_several;
