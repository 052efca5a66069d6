//! Delayed items, which most other queues cannot hold.

use anyhow::ensure;

use crate::system::Item;

/// Most other queues cannot delay items, so none is measured with delays.
pub(super) fn refuse_delays(items: &[Item]) -> anyhow::Result<()> {
    ensure!(items.iter().all(|item| item.due.is_none()), "this queue is measured without delays");
    Ok(())
}
