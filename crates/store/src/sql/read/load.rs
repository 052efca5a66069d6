//! Reads what a new owner needs. The items themselves are not read.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use forebay_types::{TopicId, TopicName};

use crate::{
    error::StoreError,
    rows::{Checkpoint, LeaseRow, ShardSnapshot, Sweep, TopicCounts, TopicRow},
    sql::{
        pack,
        statement::{ReadConnection, Statement},
        value::Row,
    },
};

pub(super) async fn load(connection: &dyn ReadConnection) -> Result<ShardSnapshot, StoreError> {
    let (topics, unfolded, deltas_from) = topics(connection).await?;
    Ok(ShardSnapshot {
        topics,
        unfolded,
        deltas_from,
        leases: leases(connection).await?,
        checkpoints: checkpoints(connection).await?,
        generations: generations(connection).await?,
    })
}

/// Topics that are read at once. There may be a million, and a page is in memory twice.
const TOPICS_PER_PAGE: u32 = 5_000;

/// Adds the deltas of later batches to each topic's own counts, and tells which topics had some. The shard
/// was taken over, so nobody changes anything between two pages. The number is the first batch with deltas.
async fn topics(connection: &dyn ReadConnection) -> Result<(Vec<TopicRow>, Vec<TopicId>, u64), StoreError> {
    let mut namespaces = HashMap::<String, Arc<str>>::new();
    let mut topics: Vec<TopicRow> = Vec::new();
    // By the topics' positions: up to which batch their counts are.
    let mut counted_at = Vec::new();
    loop {
        let after = topics.last().map_or(0, |topic| topic.id.0);
        let sql = "SELECT id, namespace, name, ready, scheduled, dead, counted_at FROM topic \
                   WHERE id > ? ORDER BY id LIMIT ?";
        let page = vec![after.into(), TOPICS_PER_PAGE.into()];
        let rows = connection.fetch(Statement::new(sql, page)).await?;
        for row in &rows {
            let namespace = row.text(1)?;
            let namespace = namespaces.entry(namespace).or_insert_with_key(|name| Arc::from(name.as_str()));
            let counts = TopicCounts { ready: row.int(3)?, scheduled: row.int(4)?, dead: row.int(5)? };
            counted_at.push(row.u64(6)?);
            let name = TopicName::new(namespace.clone(), row.text(2)?);
            topics.push(TopicRow { id: row.topic(0)?, name, counts });
        }
        if rows.len() < TOPICS_PER_PAGE as usize {
            break;
        }
    }
    let mut unfolded = BTreeSet::new();
    // Without any row, all deltas up to the last fold are gone.
    let mut deltas_from = None;
    let sql = "SELECT batch, deltas FROM count_delta ORDER BY batch";
    for row in connection.fetch(Statement::new(sql, vec![])).await? {
        let batch = row.u64(0)?;
        deltas_from.get_or_insert(batch);
        for (topic, delta) in pack::unpack_deltas(&row.bytes(1)?)? {
            // Older deltas may name a topic that was dropped since.
            let Ok(position) = topics.binary_search_by_key(&topic, |row| row.id) else { continue };
            if batch > counted_at[position] {
                topics[position].counts += delta;
                unfolded.insert(topic);
            }
        }
    }
    let deltas_from = deltas_from.or_else(|| counted_at.into_iter().max()).unwrap_or(0);
    Ok((topics, unfolded.into_iter().collect(), deltas_from))
}

async fn leases(connection: &dyn ReadConnection) -> Result<Vec<LeaseRow>, StoreError> {
    let sql = "SELECT l.id, l.entries, o.open_bits \
               FROM lease l LEFT JOIN lease_open o ON o.id = l.id ORDER BY l.id";
    let rows = connection.fetch(Statement::new(sql, vec![])).await?;
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

async fn checkpoints(connection: &dyn ReadConnection) -> Result<Vec<Checkpoint>, StoreError> {
    let rows = connection.fetch(Statement::new("SELECT sweep, at FROM checkpoint", vec![])).await?;
    let mut checkpoints = Vec::new();
    for row in &rows {
        let name = row.bytes(0)?;
        // Another version of this program may have other sweeps. They are ignored.
        if let Some(sweep) = Sweep::ALL.into_iter().find(|sweep| sweep.name().as_bytes() == name) {
            checkpoints.push(Checkpoint { sweep, at: row.time(1)? });
        }
    }
    checkpoints.sort_unstable();
    Ok(checkpoints)
}

async fn generations(connection: &dyn ReadConnection) -> Result<Vec<u64>, StoreError> {
    let rows = connection.fetch(Statement::new(connection.dialect().generations(), vec![])).await?;
    let mut generations = Vec::new();
    for row in &rows {
        let name = row.text(0)?;
        generations.extend(name.strip_prefix("dedupe_").and_then(|number| number.parse::<u64>().ok()));
    }
    generations.sort_unstable();
    Ok(generations)
}
