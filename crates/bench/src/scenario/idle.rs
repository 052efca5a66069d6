//! A node with nothing to do: many topics, each with an item that nobody asks for.

use std::time::Duration;

use crate::{
    outcome::Outcome,
    system::System,
    usage::Usage,
    workload::{Load, Shared, finish, now, start_producers},
};

/// Runs it: one item a topic, `settle` in which the node ends what that left it to do, and then so long nothing.
pub async fn run(
    system: &dyn System,
    load: &Load,
    settle: Duration,
    span: Duration,
) -> anyhow::Result<Outcome> {
    let load = Load { batch: 1, ..load.clone() };
    let shared = Shared::new(&load)?;
    shared.room.add(load.topics as usize);
    finish(&mut start_producers(&shared, system, Some(u64::from(load.topics)), None).await?).await?;
    tokio::time::sleep(settle).await;
    let (from, usage) = (now(), Usage::now(&system.parts()));
    tokio::time::sleep(span).await;
    let usage = Usage::now(&system.parts()).since(&usage);
    let span = from.elapsed().as_secs_f64();
    let mut outcome = Outcome { figures: Vec::new(), usage };
    for (role, cpu) in outcome.usage.cpu.clone() {
        if role != "load" {
            outcome.less(role, "% of a core", cpu.as_secs_f64() * 100.0 / span);
        }
    }
    // The node is what this is about.
    outcome.figures.sort_by_key(|figure| figure.name != "node");
    Ok(outcome)
}
