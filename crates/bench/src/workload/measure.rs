//! Measures a closed loop and brings it to its end.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::task::JoinSet;

use super::state::RunState;
use crate::{load::Phases, system::System, times::now, usage::Usage};

/// Work of a closed loop in the measured phase of a run.
#[derive(Debug)]
pub struct LoopMeasurements {
    /// Items that were acked.
    pub settled: u64,
    /// Items that the queue confirmed to producers.
    pub confirmed: u64,
    /// Actual length of the phase.
    pub took: Duration,
    /// CPU time and memory.
    pub usage: Usage,
}

/// Lets the workers warm up, calls `begin`, and measures. A worker that fails ends the measurement.
pub async fn measure(
    state: &RunState,
    system: &dyn System,
    phases: Phases,
    workers: [&mut JoinSet<anyhow::Result<()>>; 2],
    begin: impl FnOnce(),
) -> anyhow::Result<LoopMeasurements> {
    let work = async {
        tokio::time::sleep(phases.warm_up).await;
        begin();
        let (from, settled, confirmed) = (now(), state.settled(), state.delivery_check.confirmed());
        let usage = Usage::now(&system.processes());
        tokio::time::sleep(phases.measured).await;
        let usage = Usage::now(&system.processes()).since(&usage);
        let (settled, confirmed) = (state.settled() - settled, state.delivery_check.confirmed() - confirmed);
        LoopMeasurements { settled, confirmed, took: from.elapsed(), usage }
    };
    let [producers, consumers] = workers;
    tokio::select! {
        biased;
        measured = work => Ok(measured),
        Err(error) = finish(producers) => Err(error),
        Err(error) = finish(consumers) => Err(error),
    }
}

/// Waits for all tasks. The first error is returned at once.
pub async fn finish(tasks: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Waits until the producers have ended and everything that they sent was delivered, and checks that.
pub async fn drain(
    state: &RunState,
    producers: &mut JoinSet<anyhow::Result<()>>,
    consumers: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    finish(producers).await?;
    state.all_sent.store(true, Ordering::Release);
    finish(consumers).await?;
    state.delivery_check.finish()
}
