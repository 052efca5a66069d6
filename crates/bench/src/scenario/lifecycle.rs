//! Items that are enqueued, dequeued and acked, all at once.

use std::{sync::atomic::Ordering, time::Duration};

use crate::{
    outcome::Outcome,
    system::System,
    usage::Usage,
    workload::{Load, Shared, finish, now, start_consumers, start_producers},
};

/// How a run is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before anything is measured.
    pub warm_up: Duration,
    /// What is measured.
    pub measured: Duration,
}

/// What waits already when the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    Empty,
    /// So many items that are less urgent than those of the run.
    LessUrgent(u64),
    /// So many items like those of the run; what comes out is the oldest of each priority, so each item that
    /// goes in takes the place of one that comes out.
    Alike(u64),
}

/// Runs it.
pub async fn run(system: &dyn System, load: &Load, span: Span, backlog: Backlog) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    match backlog {
        Backlog::Empty => {}
        Backlog::LessUrgent(count) => fill(&shared, system, count, Some(load.priorities)).await?,
        Backlog::Alike(count) => fill(&shared, system, count, None).await?,
    }
    let mut consumers = start_consumers(&shared, system, false).await?;
    let mut producers = start_producers(&shared, system, None, None).await?;
    let measure = async {
        tokio::time::sleep(span.warm_up).await;
        let (from, settled, confirmed) = (now(), shared.settled(), shared.ledger.confirmed());
        let usage = Usage::now(&system.parts());
        tokio::time::sleep(span.measured).await;
        let usage = Usage::now(&system.parts()).since(&usage);
        let (settled, confirmed) = (shared.settled() - settled, shared.ledger.confirmed() - confirmed);
        // What came out of the backlog without something going in did not pass through.
        let items = if backlog == Backlog::Empty { settled } else { settled.min(confirmed) };
        Outcome::of_items(items, from.elapsed(), usage)
    };
    let outcome = tokio::select! {
        biased;
        outcome = measure => outcome,
        Err(error) = finish(&mut producers) => return Err(error),
        Err(error) = finish(&mut consumers) => return Err(error),
    };
    shared.stop_producers();
    finish(&mut producers).await?;
    if backlog == Backlog::Empty {
        shared.sent.store(true, Ordering::Release);
        finish(&mut consumers).await?;
        shared.ledger.close()?;
    } else {
        // Draining millions would take longer than the run: what came out has been checked, the rest stays.
        shared.stop_consumers();
        finish(&mut consumers).await?;
    }
    Ok(outcome)
}

async fn fill(
    shared: &std::sync::Arc<Shared>,
    system: &dyn System,
    count: u64,
    priority: Option<u8>,
) -> anyhow::Result<()> {
    shared.room.add(count as usize);
    finish(&mut start_producers(shared, system, Some(count), priority).await?).await
}
