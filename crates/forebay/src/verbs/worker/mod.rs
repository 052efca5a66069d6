//! `forebay worker`: runs a command on each item.

mod child;
mod environment;
mod flags;
mod handler;
mod result_file;
mod stderr_tail;
mod stopping;
mod verdict;

use std::{convert::Infallible, sync::Arc};

use forebay_client::{ClientConfig, Consumer, ConsumerConfig, ConsumerReport};

use super::connection::checked;
use crate::{
    failure::{Failure, Status},
    log,
};
pub use flags::Worker;
use handler::Jobs;
use stopping::{Stage, StopSignal};

impl Worker {
    /// Runs the command on items until it is told to stop, or until there is nothing more to do.
    pub async fn run(self) -> Result<(), Failure> {
        let command = self.command()?;
        environment::hide();
        let stopping = StopSignal::listen(self.grace)?;
        let config = ClientConfig { learn_nodes: true, ..self.servers.config()? };
        if !self.quiet {
            log::start_warnings();
        }
        let client = checked(self.servers.client(config)?).await?;
        let max_items = if self.once { Some(1) } else { self.max_items };
        let config = ConsumerConfig {
            lease: self.lease,
            name: self.consumer_name(),
            // Children have their own grace.
            stop_grace: std::time::Duration::MAX,
            max_items: max_items.map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
            idle_exit: self.idle_exit,
            ..ConsumerConfig::new(&self.topics).concurrency(self.concurrency as usize)
        };
        let jobs = Arc::new(Jobs::new(&self, command, client.namespace(), max_items, stopping.clone())?);
        let consumer = Consumer::start(client, config, {
            let jobs = jobs.clone();
            move |delivery| {
                let jobs = jobs.clone();
                async move { jobs.handle(delivery).await }
            }
        });
        let report = tokio::select! {
            biased;
            report = consumer.run_until(stopping.reached(Stage::Enough)) => report?,
            never = self.confirm_stop(&stopping) => match never {},
        };
        if !self.quiet {
            eprintln!("forebay: {}", summary(&report));
        }
        if let Some(why) = jobs.failed() {
            return Err(Failure::new(why));
        }
        if stopping.now() == Stage::Kill {
            return Err(Failure::new("interrupted; what ran was killed and its items were released")
                .with(Status::Interrupted));
        }
        match report.unsettled {
            0 => Ok(()),
            items => Err(Failure::new(format!(
                "the outcomes of {items} items could not be stored: they are delivered again unless they were"
            ))
            .with(Status::Partly)),
        }
    }

    /// Says that no more items are taken, once that is so because of a signal.
    async fn confirm_stop(&self, stopping: &StopSignal) -> Infallible {
        stopping.reached(Stage::Draining).await;
        // The consumer is told before.
        tokio::task::yield_now().await;
        if !self.quiet {
            eprintln!("forebay: stopping; a second signal kills commands that still run");
        }
        std::future::pending().await
    }
}

/// Sums up the work in one line.
fn summary(report: &ConsumerReport) -> String {
    let counts = [
        (report.acked, "done"),
        (report.retried, "to be retried"),
        (report.rejected, "dead letters"),
        (report.released, "released"),
        (report.lost, "lost"),
        (report.unsettled, "of unknown outcome"),
    ];
    let parts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() { "no items".to_owned() } else { format!("items: {}", parts.join(", ")) }
}
