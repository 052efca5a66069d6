//! Every metric: its type, its labels and what it means. `docs/METRICS.md` shows the same.

mod items;
mod labels;
mod nodes;
mod shards;

use self::{items::ITEMS, nodes::NODES, shards::SHARDS};
use super::metric::Metric;

/// All metrics, in the order of the documentation.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    ITEMS.iter().chain(SHARDS).chain(NODES)
}
