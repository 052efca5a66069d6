//! Measures enqueues. The items are then dequeued and checked, which is not measured.

use std::sync::atomic::Ordering;

use crate::{
    load::Load,
    round_result::RoundResult,
    system::System,
    times::now,
    usage::Usage,
    workload::{
        measure::finish,
        state::RunState,
        workers::{start_consumers, start_producers},
    },
};

/// Enqueues `items` items.
pub async fn run(system: &dyn System, load: &Load, items: u64) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    state.in_flight_limit.release(items as usize);
    let mut producers = start_producers(&state, system, Some(items), None).await?;
    let (from, usage) = (now(), Usage::now(&system.processes()));
    finish(&mut producers).await?;
    let took = from.elapsed();
    let usage = Usage::now(&system.processes()).since(&usage);
    state.all_sent.store(true, Ordering::Release);
    finish(&mut start_consumers(&state, system, false).await?).await?;
    state.delivery_check.finish()?;
    Ok(RoundResult::of_items(items, took, usage))
}
