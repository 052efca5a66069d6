//! Measures an idle node with many topics, each with one item that is never dequeued.

use std::time::Duration;

use crate::{
    load::Load,
    round_result::RoundResult,
    system::System,
    times::now,
    usage::Usage,
    workload::{measure::finish, state::RunState, workers::start_producers},
};

/// Enqueues one item per topic, pauses for `settle` so that the node can finish its work, and measures for
/// `measured`.
pub async fn run(
    system: &dyn System,
    load: &Load,
    settle: Duration,
    measured: Duration,
) -> anyhow::Result<RoundResult> {
    let load = Load { batch: 1, ..load.clone() };
    let state = RunState::new(&load)?;
    state.in_flight_limit.release(load.topics as usize);
    finish(&mut start_producers(&state, system, Some(u64::from(load.topics)), None).await?).await?;
    tokio::time::sleep(settle).await;
    let (from, usage) = (now(), Usage::now(&system.processes()));
    tokio::time::sleep(measured).await;
    let usage = Usage::now(&system.processes()).since(&usage);
    let seconds = from.elapsed().as_secs_f64();
    let mut result = RoundResult { metrics: Vec::new(), usage };
    for (role, cpu) in result.usage.cpu.clone() {
        if role != "load" {
            result.add_less_is_better(role, "% of a core", cpu.as_secs_f64() * 100.0 / seconds);
        }
    }
    // The node is the main metric.
    result.metrics.sort_by_key(|metric| metric.name != "node");
    Ok(result)
}
