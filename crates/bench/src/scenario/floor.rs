//! The floor's own loop, cut like the scenario that it is compared with.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    outcome::Outcome,
    payload::Payloads,
    system::floor::{Floor, Steps},
    usage::Usage,
    workload::{Gate, Load, Span, now},
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
    let (gate, done) = (Gate::open(), Arc::new(AtomicU64::new(0)));
    let so_far = || done.load(Ordering::Relaxed);
    let work = floor.run(steps, batch, payloads, &gate, &done);
    if steps == Steps::Drain {
        // It ends by itself, and the drain of a queue has no warm-up either.
        let (from, before) = (now(), Usage::now(&parts));
        work.await?;
        let took = from.elapsed();
        return Ok(Outcome::of_items(so_far(), took, Usage::now(&parts).since(&before)));
    }
    let measure = async {
        tokio::time::sleep(span.warm_up).await;
        let (from, first, before) = (now(), so_far(), Usage::now(&parts));
        tokio::time::sleep(span.measured).await;
        let usage = Usage::now(&parts).since(&before);
        let outcome = Outcome::of_items(so_far() - first, from.elapsed(), usage);
        gate.close();
        Ok(outcome)
    };
    let (outcome, ()) = tokio::try_join!(measure, work)?;
    Ok(outcome)
}
