//! The floor's own loop, cut like the scenario that it is compared with.

use std::sync::Arc;

use super::lifecycle::Span;
use crate::{
    outcome::Outcome,
    payload::Payloads,
    system::floor::{Floor, Steps},
    usage::Usage,
    workload::{Gate, Load, now},
};

/// Runs it with transactions of `batch` items, on top of `backlog` items that stay, or, to drain them, until
/// they are gone.
pub async fn run(
    floor: &mut Floor,
    load: &Load,
    steps: Steps,
    batch: usize,
    span: Span,
    backlog: u64,
) -> anyhow::Result<Outcome> {
    let payloads = Arc::new(Payloads::new(load.seed, load.item_bytes)?);
    floor.fill(&payloads, backlog).await?;
    let parts = floor.parts();
    let gate = Gate::open();
    let (from, before) = (now(), Usage::now(&parts));
    // A drain ends by itself.
    let timer = (steps != Steps::Drain).then(|| {
        let gate = gate.clone();
        tokio::spawn(async move {
            tokio::time::sleep(span.warm_up + span.measured).await;
            gate.close();
        })
    });
    let done = floor.run(steps, batch, payloads, gate).await?;
    if let Some(timer) = timer {
        timer.abort();
    }
    let usage = Usage::now(&parts).since(&before);
    Ok(Outcome::of_items(done, from.elapsed(), usage))
}
