//! The shards that the engine has: those that the catalog lists, and no others.

use std::{collections::BTreeMap, sync::Arc};

use forebay_engine::{Intake, ListedShard};
use forebay_store::{CatalogShard, CatalogShardState, Shard};
use forebay_types::ShardId;

use crate::opening::OpenShards;

/// Whether operators want a shard to take new items. One that is offline has no owner: it is kept as the home
/// of its keys, which nobody else may store meanwhile.
const fn intake(state: CatalogShardState) -> Intake {
    match state {
        CatalogShardState::Active | CatalogShardState::Offline => Intake::Open,
        CatalogShardState::Draining => Intake::Closed,
    }
}

/// The shards that the engine has, as the catalog listed them.
pub struct EngineShards {
    /// Opens shards.
    opener: Arc<dyn OpenShards>,
    /// The catalog's rows that the engine was told of last.
    pub(crate) listed: Vec<CatalogShard>,
    /// The way to each, as it was opened.
    open: BTreeMap<ShardId, Arc<dyn Shard>>,
}

impl EngineShards {
    /// The shards of the catalog as it was read at the start, as they were opened.
    pub fn begin(
        listed: Vec<CatalogShard>,
        opener: Arc<dyn OpenShards>,
        open: Vec<(ShardId, Arc<dyn Shard>)>,
    ) -> Self {
        Self { opener, listed, open: open.into_iter().collect() }
    }

    /// The shards with which the engine begins.
    pub fn shards(&self) -> Vec<ListedShard> {
        self.list(&self.listed)
    }

    /// Takes these rows, and returns the lists for the engine, in order. A shard whose address has changed is
    /// removed by one list and added by the next: the engine keeps nothing of the old one.
    pub(crate) fn take(&mut self, rows: &[CatalogShard]) -> Vec<Vec<ListedShard>> {
        let moved = |id: &ShardId| {
            let url =
                |rows: &[CatalogShard]| rows.iter().find(|row| row.id == *id).map(|row| row.url.clone());
            url(&self.listed) != url(rows)
        };
        let gone: Vec<ShardId> = self.open.keys().copied().filter(moved).collect();
        let replaced = gone.iter().any(|id| rows.iter().any(|row| row.id == *id));
        self.open.retain(|id, _| !gone.contains(id));
        let mut lists = Vec::new();
        if replaced {
            lists.push(self.list(rows));
        }
        for row in rows {
            if !self.open.contains_key(&row.id) {
                match self.opener.open(row) {
                    Ok(shard) => drop(self.open.insert(row.id, shard)),
                    Err(error) => tracing::error!(shard.id = row.id.0, "cannot open a shard: {error}"),
                }
            }
        }
        lists.push(self.list(rows));
        self.opener.changed(rows);
        self.listed = rows.to_vec();
        lists
    }

    fn list(&self, rows: &[CatalogShard]) -> Vec<ListedShard> {
        let listed = rows.iter().filter_map(|row| {
            let shard = self.open.get(&row.id)?.clone();
            Some(ListedShard { id: row.id, shard, intake: intake(row.state) })
        });
        listed.collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_store::SqliteShard;

    use super::*;

    /// Opens all but those that have no URL.
    struct Opener;

    impl OpenShards for Opener {
        fn open(&self, row: &CatalogShard) -> Result<Arc<dyn Shard>, String> {
            match row.url.as_str() {
                "" => Err("it has no URL".to_owned()),
                url => Ok(Arc::new(SqliteShard::new(row.id, url))),
            }
        }

        fn changed(&self, _rows: &[CatalogShard]) {}
    }

    fn row(id: u32, url: &str, state: CatalogShardState) -> CatalogShard {
        CatalogShard { id: ShardId(id), url: url.to_owned(), state }
    }

    fn followed() -> EngineShards {
        EngineShards { opener: Arc::new(Opener), listed: Vec::new(), open: BTreeMap::new() }
    }

    fn told(followed: &mut EngineShards, rows: &[CatalogShard]) -> Vec<Vec<(u32, Intake)>> {
        let lists = followed.take(rows).into_iter();
        lists.map(|list| list.iter().map(|shard| (shard.id.0, shard.intake)).collect()).collect()
    }

    #[test]
    fn the_engine_has_the_shards_of_the_catalog() {
        use CatalogShardState::{Active, Draining, Offline};
        let mut followed = followed();
        let rows = [row(1, "a", Active), row(2, "b", Draining), row(4, "", Active)];
        assert_eq!(told(&mut followed, &rows), [[(1, Intake::Open), (2, Intake::Closed)]]);
        let rows = [row(1, "a", Offline), row(3, "c", Active)];
        assert_eq!(told(&mut followed, &rows), [[(1, Intake::Open), (3, Intake::Open)]]);
        assert_eq!(followed.open.len(), 2);
    }

    #[test]
    fn a_shard_that_is_elsewhere_is_removed_before_it_is_added() {
        let active = CatalogShardState::Active;
        let mut followed = followed();
        told(&mut followed, &[row(1, "a", active), row(2, "b", active)]);
        let rows = [row(1, "a", active), row(2, "c", active)];
        let both = vec![(1, Intake::Open), (2, Intake::Open)];
        assert_eq!(told(&mut followed, &rows), [vec![(1, Intake::Open)], both]);
    }
}
