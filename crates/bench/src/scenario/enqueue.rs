//! Items that go in; afterwards they are taken out again, unmeasured, and checked.

use std::sync::atomic::Ordering;

use crate::{
    outcome::Outcome,
    system::System,
    usage::Usage,
    workload::{Load, Shared, finish, now, start_consumers, start_producers},
};

/// Runs it with so many items.
pub async fn run(system: &dyn System, load: &Load, items: u64) -> anyhow::Result<Outcome> {
    let shared = Shared::new(load)?;
    shared.room.add(items as usize);
    let mut producers = start_producers(&shared, system, Some(items), None).await?;
    let (from, usage) = (now(), Usage::now(&system.parts()));
    finish(&mut producers).await?;
    let span = from.elapsed();
    let usage = Usage::now(&system.parts()).since(&usage);
    shared.sent.store(true, Ordering::Release);
    finish(&mut start_consumers(&shared, system, false).await?).await?;
    shared.ledger.close()?;
    Ok(Outcome::of_items(items, span, usage))
}
