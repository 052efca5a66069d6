//! Items that are enqueued, dequeued and acked, all at once.

use std::sync::Arc;

use crate::{
    outcome::Outcome,
    system::System,
    workload::{Load, Measured, Shared, Span, drain, finish, measure, start_consumers, start_producers},
};

/// What waits already when the run begins. It stays as much: consumers take as many items as the run puts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing.
    Empty,
    /// So many items that are less urgent than those of the run.
    LessUrgent(u64),
    /// So many items like those of the run; what comes out is the oldest of each priority.
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
    if backlog != Backlog::Empty {
        system.settle().await?;
        shared.keep_level();
    }
    let mut consumers = start_consumers(&shared, system, false).await?;
    let mut producers = start_producers(&shared, system, None, None).await?;
    let measured = measure(&shared, system, span, [&mut producers, &mut consumers], || {}).await?;
    shared.stop_producers();
    if backlog == Backlog::Empty {
        drain(&shared, &mut producers, &mut consumers).await?;
    } else {
        // Draining millions would take longer than the run: what came out has been checked, the rest stays.
        finish(&mut producers).await?;
        shared.stop_consumers();
        finish(&mut consumers).await?;
    }
    let Measured { settled, took, usage, .. } = measured;
    Ok(Outcome::of_items(settled, took, usage))
}

async fn fill(
    shared: &Arc<Shared>,
    system: &dyn System,
    count: u64,
    priority: Option<u8>,
) -> anyhow::Result<()> {
    shared.room.add(count as usize);
    finish(&mut start_producers(shared, system, Some(count), priority).await?).await
}
