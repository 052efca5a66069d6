//! A backlog that is taken out, in exact order where one consumer has a topic for itself.

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
    finish(&mut start_producers(&shared, system, Some(items), None).await?).await?;
    shared.sent.store(true, Ordering::Release);
    let (from, usage) = (now(), Usage::now(&system.parts()));
    let mut consumers = start_consumers(&shared, system, load.consumers <= load.topics).await?;
    // The last consumers wait for items that do not come; what is measured ends with the last item.
    while shared.settled() < items {
        tokio::select! {
            ended = consumers.join_next() => match ended {
                Some(ended) => ended??,
                None => break,
            },
            () = tokio::time::sleep(POLL) => {}
        }
    }
    let span = from.elapsed();
    let usage = Usage::now(&system.parts()).since(&usage);
    finish(&mut consumers).await?;
    shared.ledger.close()?;
    Ok(Outcome::of_items(items, span, usage))
}

const POLL: std::time::Duration = std::time::Duration::from_millis(1);
