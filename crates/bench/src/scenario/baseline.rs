//! Measures the baseline, with the same phases as the scenario that it is compared with.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::{
    limit::StopFlag,
    load::{Load, Phases},
    payload::Payloads,
    round_result::RoundResult,
    system::baseline::{Baseline, Steps},
    times::now,
    usage::Usage,
};

/// Measures transactions of `batch` items on top of a backlog, which stays, or is drained with
/// [`Steps::Drain`].
pub async fn run(
    baseline: &mut Baseline,
    load: &Load,
    steps: Steps,
    batch: usize,
    phases: Phases,
    backlog: u64,
) -> anyhow::Result<RoundResult> {
    let payloads = Arc::new(Payloads::new(load.seed, load.item_bytes)?);
    baseline.fill(&payloads, backlog).await?;
    let processes = baseline.processes();
    let (stop, done) = (StopFlag::new(), Arc::new(AtomicU64::new(0)));
    let so_far = || done.load(Ordering::Relaxed);
    let work = baseline.run(steps, batch, payloads, &stop, &done);
    if steps == Steps::Drain {
        // A drain ends by itself and has no warm-up, like the drain of a queue.
        let (from, before) = (now(), Usage::now(&processes));
        work.await?;
        let took = from.elapsed();
        return Ok(RoundResult::of_items(so_far(), took, Usage::now(&processes).since(&before)));
    }
    let measure = async {
        tokio::time::sleep(phases.warm_up).await;
        let (from, first, before) = (now(), so_far(), Usage::now(&processes));
        tokio::time::sleep(phases.measured).await;
        let usage = Usage::now(&processes).since(&before);
        let result = RoundResult::of_items(so_far() - first, from.elapsed(), usage);
        stop.set();
        Ok(result)
    };
    let (result, ()) = tokio::try_join!(measure, work)?;
    Ok(result)
}
