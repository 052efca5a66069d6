//! Tells the engine of shards that were added, drained or removed.

use crate::member::Member;

impl Member {
    /// Tells the engine of the catalog's shards, if they have changed.
    pub(crate) fn follow_shards(&mut self) {
        let Some(view) = self.copy.view() else { return };
        let followed = &mut self.setup.followed;
        if view.shards == followed.listed {
            return;
        }
        for list in followed.take(&view.shards) {
            self.setup.engine.set_shards(list);
        }
        // A new one has been looked at by the next turn.
        self.hurries = true;
    }
}
