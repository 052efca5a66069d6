//! What a new owner needs to know. Never reads the items.

use std::{collections::HashMap, sync::Arc};

use forebay_types::{TopicId, TopicName};

use super::{ReadConnection, Row, Statement, pack};
use crate::{LeaseRow, ShardSnapshot, StoreError, Sweep, TopicCounts, TopicRow};

pub(super) async fn load(source: &dyn ReadConnection) -> Result<ShardSnapshot, StoreError> {
    Ok(ShardSnapshot {
        topics: topics(source).await?,
        leases: leases(source).await?,
        checkpoints: checkpoints(source).await?,
        generations: generations(source).await?,
    })
}

/// Each topic's own counts, and the deltas of the batches since.
async fn topics(source: &dyn ReadConnection) -> Result<Vec<TopicRow>, StoreError> {
    let sql = "SELECT id, namespace, name, ready, scheduled, dead, counted_at FROM topic ORDER BY id";
    let rows = source.fetch(Statement::new(sql, vec![])).await?;
    let mut namespaces = HashMap::<String, Arc<str>>::new();
    let mut topics = Vec::with_capacity(rows.len());
    let mut places: HashMap<TopicId, (usize, u64)> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let id = row.topic(0)?;
        let namespace = row.text(1)?;
        let namespace = namespaces.entry(namespace).or_insert_with_key(|name| Arc::from(name.as_str()));
        let counts = TopicCounts { ready: row.int(3)?, scheduled: row.int(4)?, dead: row.int(5)? };
        places.insert(id, (topics.len(), row.u64(6)?));
        topics.push(TopicRow { id, name: TopicName::new(namespace.clone(), row.text(2)?), counts });
    }
    let sql = "SELECT batch, deltas FROM count_delta ORDER BY batch";
    for row in source.fetch(Statement::new(sql, vec![])).await? {
        let batch = row.u64(0)?;
        for (topic, delta) in pack::unpack_deltas(&row.bytes(1)?)? {
            // A topic that was dropped since is in the deltas of its past only.
            let Some((place, counted_at)) = places.get(&topic) else { continue };
            if batch > *counted_at {
                let counts = &mut topics[*place].counts;
                counts.ready += delta.ready;
                counts.scheduled += delta.scheduled;
                counts.dead += delta.dead;
            }
        }
    }
    Ok(topics)
}

async fn leases(source: &dyn ReadConnection) -> Result<Vec<LeaseRow>, StoreError> {
    let sql = "SELECT l.id, l.entries, o.open_bits FROM lease l LEFT JOIN lease_open o ON o.id = l.id ORDER BY l.id";
    let rows = source.fetch(Statement::new(sql, vec![])).await?;
    let decode = |row: &Row| {
        let entries = pack::unpack_entries(&row.bytes(1)?)?;
        let open = match row.optional_bytes(2)? {
            Some(bits) => pack::unpack_bits(&bits, entries.len())?,
            None => vec![true; entries.len()],
        };
        Ok(LeaseRow { id: row.u64(0)?, entries, open })
    };
    rows.iter().map(decode).collect()
}

async fn checkpoints(
    source: &dyn ReadConnection,
) -> Result<Vec<(Sweep, forebay_types::Timestamp)>, StoreError> {
    let rows = source.fetch(Statement::new("SELECT sweep, at FROM checkpoint", vec![])).await?;
    let mut checkpoints = Vec::new();
    for row in &rows {
        let name = row.bytes(0)?;
        // A sweep of another version of this program is none of ours.
        if let Some(sweep) = Sweep::ALL.into_iter().find(|sweep| sweep.name().as_bytes() == name) {
            checkpoints.push((sweep, row.time(1)?));
        }
    }
    checkpoints.sort_unstable();
    Ok(checkpoints)
}

async fn generations(source: &dyn ReadConnection) -> Result<Vec<u64>, StoreError> {
    let rows = source.fetch(Statement::new(source.dialect().generations(), vec![])).await?;
    let mut generations = Vec::new();
    for row in &rows {
        let name = row.text(0)?;
        generations.extend(name.strip_prefix("dedupe_").and_then(|number| number.parse::<u64>().ok()));
    }
    generations.sort_unstable();
    Ok(generations)
}
