//! Measures draining a backlog. If each topic has one consumer, the exact order is checked.

use std::{sync::atomic::Ordering, time::Duration};

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

const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Drains `items` items.
pub async fn run(system: &dyn System, load: &Load, items: u64) -> anyhow::Result<RoundResult> {
    let state = RunState::new(load)?;
    state.in_flight_limit.release(items as usize);
    finish(&mut start_producers(&state, system, Some(items), None).await?).await?;
    state.all_sent.store(true, Ordering::Release);
    let (from, usage) = (now(), Usage::now(&system.processes()));
    let mut consumers = start_consumers(&state, system, load.consumers <= load.topics).await?;
    // The last consumers wait for more items, so the measurement ends with the last item.
    while state.settled() < items {
        tokio::select! {
            ended = consumers.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            },
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
    let took = from.elapsed();
    let usage = Usage::now(&system.processes()).since(&usage);
    finish(&mut consumers).await?;
    state.delivery_check.finish()?;
    Ok(RoundResult::of_items(items, took, usage))
}
