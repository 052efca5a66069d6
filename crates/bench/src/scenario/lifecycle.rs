//! Measures enqueue, dequeue and ack at the same time.

use std::sync::Arc;

use crate::{
    load::{Load, Phases},
    round_result::RoundResult,
    system::System,
    workload::{
        measure::{LoopMeasurements, drain, finish, measure},
        state::RunState,
        workers::{start_consumers, start_producers},
    },
};

/// The backlog at the start of the run. Its size stays the same: consumers take as many items as producers
/// add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backlog {
    /// No backlog.
    Empty,
    /// This many items, less urgent than those of the run.
    LessUrgent(u64),
    /// This many items like those of the run. The oldest items of each priority are delivered first.
    Equal(u64),
}

/// Measures the lifecycle on top of `backlog`.
pub async fn run(
    system: &dyn System,
    load: &Load,
    phases: Phases,
    backlog: Backlog,
) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    match backlog {
        Backlog::Empty => {}
        Backlog::LessUrgent(count) => fill(&state, system, count, Some(load.priorities)).await?,
        Backlog::Equal(count) => fill(&state, system, count, None).await?,
    }
    if backlog != Backlog::Empty {
        system.flush().await?;
        state.keep_backlog();
    }
    let mut consumers = start_consumers(&state, system, false).await?;
    let mut producers = start_producers(&state, system, None, None).await?;
    let measured = measure(&state, system, phases, [&mut producers, &mut consumers], || {}).await?;
    state.stop_producers();
    if backlog == Backlog::Empty {
        drain(&state, &mut producers, &mut consumers).await?;
    } else {
        // Draining millions of items would take longer than the run. Delivered items are checked, the rest
        // stays.
        finish(&mut producers).await?;
        state.stop_consumers();
        finish(&mut consumers).await?;
    }
    let LoopMeasurements { settled, took, usage, .. } = measured;
    Ok(RoundResult::of_items(settled, took, usage))
}

async fn fill(
    state: &Arc<RunState>,
    system: &dyn System,
    count: u64,
    priority: Option<u8>,
) -> anyhow::Result<()> {
    state.in_flight_limit.release(count as usize);
    finish(&mut start_producers(state, system, Some(count), priority).await?).await
}
