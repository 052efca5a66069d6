//! Tells the engine of shards that were added, drained or removed.

use super::{followed::shard_config, membership::Member};
use crate::http::metrics;

impl Member {
    /// Tells the engine of the catalog's shards, if they have changed.
    pub(super) fn follow_shards(&mut self) {
        let Some(view) = self.copy.view() else { return };
        let followed = &mut self.setup.followed;
        if view.shards == followed.listed {
            return;
        }
        for list in followed.take(&view.shards) {
            self.setup.engine.set_shards(list);
        }
        metrics::add_shards(&view.shards.iter().map(|row| row.id).collect::<Vec<_>>());
        let shards = view.shards.iter().map(shard_config).collect();
        self.setup.shards.send_replace(shards);
        // A new one has been looked at by the next turn.
        self.hurries = true;
    }
}
