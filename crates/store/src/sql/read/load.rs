//! Reads what a new owner needs. The items themselves are not read.

use std::collections::{BTreeMap, HashSet};

use forebay_types::{Namespace, Timestamp, TopicId, TopicName};
use futures_util::future::join;

use crate::{
    error::StoreError,
    operation::{
        OperationId, OperationKind, OperationProgress, OperationRow, unpack_operation, unpack_position,
    },
    rows::{Checkpoint, LeaseRow, ShardSnapshot, Sweep, TopicCounts, TopicRow},
    sql::{
        pack, row_counts,
        statement::{ReadConnection, Statement, scalar},
        value::Row,
    },
    tally::{Tally, TopicTally},
};

pub(super) async fn load(connection: &dyn ReadConnection) -> Result<ShardSnapshot, StoreError> {
    let (operations, unreadable_operations) = operations(connection).await?;
    let mut snapshot = ShardSnapshot {
        leases: leases(connection).await?,
        checkpoints: checkpoints(connection).await?,
        generations: generations(connection).await?,
        operations,
        unreadable_operations,
        ..ShardSnapshot::default()
    };
    topics(connection, &mut snapshot).await?;
    Ok(snapshot)
}

/// Topics that are read at once. There may be a million, and a page is in memory twice.
const TOPICS_PER_PAGE: u32 = 5_000;
/// Rows that are dormant unless later deltas say otherwise. There may be many, so they are not read.
pub(super) const DORMANT: &str = "ready = 0 AND scheduled = 0 AND dead > 0";
/// What is read of each topic.
const TOPIC: &str = "id, namespace, name, ready, scheduled, dead, counted_at";
/// Where a tally is behind these columns.
const TALLY: usize = 7;

/// A topic that was read.
struct ReadTopic {
    /// The topic.
    row: TopicRow,
    /// What was counted of its items, if it is read here.
    tally: Option<TopicTally>,
    /// The batch as of which the row has counted.
    counted_at: u64,
    /// There are deltas of later batches.
    unfolded: bool,
}

/// Reads topics.
#[derive(Default)]
struct TopicReader {
    /// One string a namespace.
    namespaces: HashSet<Namespace>,
}

impl TopicReader {
    /// Reads all topics that are not dormant, by their numbers.
    async fn read_awake(&mut self, connection: &dyn ReadConnection) -> Result<Vec<ReadTopic>, StoreError> {
        let sql = format!("SELECT {TOPIC} FROM topic WHERE id > ? AND NOT ({DORMANT}) ORDER BY id LIMIT ?");
        let page_after = |after: TopicId| {
            connection.fetch(Statement::new(sql.clone(), vec![after.0.into(), TOPICS_PER_PAGE.into()]))
        };
        let mut topics = Vec::new();
        let mut page = page_after(TopicId(0)).await?;
        while page.len() == TOPICS_PER_PAGE as usize
            && let Some(last) = page.last()
        {
            // The server reads the next page while this one is decoded.
            let (next, decoded) = join(page_after(last.topic(0)?), async { self.decode(&page) }).await;
            topics.extend(decoded?);
            page = next?;
        }
        topics.extend(self.decode(&page)?);
        Ok(topics)
    }

    fn decode(&mut self, rows: &[Row]) -> Result<Vec<ReadTopic>, StoreError> {
        rows.iter().map(|row| self.decode_row(row)).collect()
    }

    fn decode_row(&mut self, row: &Row) -> Result<ReadTopic, StoreError> {
        let namespace = row.str(1)?;
        let namespace = match self.namespaces.get(namespace) {
            Some(known) => known.clone(),
            None => {
                let new = Namespace::from(namespace);
                self.namespaces.insert(new.clone());
                new
            }
        };
        let counts = TopicCounts { ready: row.int(3)?, scheduled: row.int(4)?, dead: row.int(5)? };
        let name = TopicName::new(namespace, row.str(2)?);
        let counted_at = row.u64(6)?;
        let row = TopicRow { id: row.topic(0)?, name, counts };
        Ok(ReadTopic { row, tally: None, counted_at, unfolded: false })
    }
}

/// The place of a topic among those that were read.
fn place_of(topics: &[ReadTopic], id: TopicId) -> Option<usize> {
    topics.binary_search_by_key(&id, |topic| topic.row.id).ok()
}

/// A topic that has a delta of a batch which its row has not counted. Older deltas may name a topic that was
/// dropped since, or is dormant.
fn unfolded(topics: &mut [ReadTopic], id: TopicId, batch: u64) -> Option<&mut ReadTopic> {
    let place = place_of(topics, id)?;
    let topic = topics.get_mut(place).filter(|topic| batch > topic.counted_at)?;
    topic.unfolded = true;
    Some(topic)
}

/// Adds the deltas of later batches to each topic's own counts, and tells which topics had some. The shard
/// was taken over, so nobody changes anything between two pages.
async fn topics(connection: &dyn ReadConnection, snapshot: &mut ShardSnapshot) -> Result<(), StoreError> {
    let deltas = deltas(connection).await?;
    let mut reader = TopicReader::default();
    let mut topics = reader.read_awake(connection).await?;
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(dead), 0) AS SIGNED), COALESCE(MAX(counted_at), 0) \
         FROM topic WHERE {DORMANT}"
    );
    let row = scalar(connection.fetch(Statement::new(sql, vec![])).await?, "dormant topics")?;
    snapshot.dormant_dead = row.int(0)?;
    let last_fold = topics.iter().map(|topic| topic.counted_at).max().unwrap_or(0).max(row.u64(1)?);

    // Rows that look dormant, and have later deltas.
    let mut changed_at: BTreeMap<TopicId, u64> = BTreeMap::new();
    for (batch, of_batch) in &deltas {
        let others = of_batch.topics().filter(|id| place_of(&topics, *id).is_none());
        changed_at.extend(others.map(|id| (id, *batch)));
    }
    let mut awake = Vec::new();
    for ids in row_counts::key_lists(changed_at.keys().copied().collect()) {
        let places = row_counts::placeholders(ids.len());
        let sql = format!("SELECT {TOPIC}, tally FROM topic WHERE id IN ({places})");
        let values = ids.into_iter().map(Into::into).collect();
        for row in connection.fetch(Statement::new(sql, values)).await? {
            awake.push(ReadTopic { tally: tally(&row, TALLY)?, ..reader.decode_row(&row)? });
        }
    }
    awake.retain(|topic| changed_at.get(&topic.row.id) > Some(&topic.counted_at));
    snapshot.dormant_dead -= awake.iter().map(|topic| topic.row.counts.dead).sum::<i64>();
    if !awake.is_empty() {
        topics.extend(awake);
        topics.sort_unstable_by_key(|topic| topic.row.id);
    }

    // Without any delta, all up to the last fold are gone.
    snapshot.deltas_from = deltas.first().map_or(last_fold, |(batch, _)| *batch);
    for (batch, of_batch) in deltas {
        for (id, delta) in of_batch.counts {
            if let Some(topic) = unfolded(&mut topics, id, batch) {
                topic.row.counts += delta;
            }
        }
        for (id, delta) in of_batch.tallies {
            let new = TopicTally { since: of_batch.at, tally: Tally::default() };
            if let Some(topic) = unfolded(&mut topics, id, batch) {
                topic.tally.get_or_insert(new).tally += delta;
            }
        }
    }
    for ReadTopic { row, tally, unfolded, .. } in topics {
        snapshot.unfolded.extend(unfolded.then_some(row.id));
        snapshot.tallies.extend(tally.map(|tally| (row.id, tally)));
        snapshot.topics.push(row);
    }
    Ok(())
}

/// Reads the tallies of topics that are not loaded here: with 100,000 topics that takes half as long again.
pub(super) async fn tallies(
    connection: &dyn ReadConnection,
    after: TopicId,
    limit: usize,
) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
    let sql = format!(
        "SELECT id, tally FROM topic \
         WHERE id > ? AND tally IS NOT NULL AND NOT ({DORMANT}) ORDER BY id LIMIT ?"
    );
    let rows = connection.fetch(Statement::new(sql, vec![after.into(), (limit as u64).into()])).await?;
    let mut tallies = Vec::with_capacity(rows.len());
    for row in rows {
        let id = row.topic(0)?;
        // One row that can't be read does not keep all others from being counted.
        let tally = tally(&row, 1).unwrap_or_else(|error| {
            tracing::error!("topic {} counts from zero: {error}", id.0);
            None
        });
        let nothing = TopicTally { since: Timestamp::MIN, tally: Tally::default() };
        tallies.push((id, tally.unwrap_or(nothing)));
    }
    Ok(tallies)
}

fn tally(row: &Row, column: usize) -> Result<Option<TopicTally>, StoreError> {
    row.optional_bytes(column)?.map(|tally| pack::unpack_tally(&tally)).transpose()
}

/// What a batch changed of the counts.
struct BatchDeltas {
    /// How many items topics have.
    counts: Vec<(TopicId, TopicCounts)>,
    /// What became of them.
    tallies: Vec<(TopicId, Tally)>,
    /// When, if it tells what became of items.
    at: Timestamp,
}

impl BatchDeltas {
    fn topics(&self) -> impl Iterator<Item = TopicId> {
        self.counts.iter().map(|(id, _)| *id).chain(self.tallies.iter().map(|(id, _)| *id))
    }
}

/// The changes of counts that are not folded yet, by batch.
async fn deltas(connection: &dyn ReadConnection) -> Result<Vec<(u64, BatchDeltas)>, StoreError> {
    let sql = "SELECT batch, deltas, tallies FROM count_delta ORDER BY batch";
    let rows = connection.fetch(Statement::new(sql, vec![])).await?;
    let decode = |row: &Row| {
        let counts = pack::unpack_deltas(&row.bytes(1)?)?;
        let (at, tallies) = match row.optional_bytes(2)? {
            Some(tallies) => pack::unpack_tallies(&tallies)?,
            None => (Timestamp::MIN, Vec::new()),
        };
        Ok((row.u64(0)?, BatchDeltas { counts, tallies, at }))
    };
    rows.iter().map(decode).collect()
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

/// There are few: an owner forgets those that ended long ago. Those of a later program, which this one can't
/// read, are only named.
async fn operations(
    connection: &dyn ReadConnection,
) -> Result<(Vec<OperationRow>, Vec<OperationId>), StoreError> {
    let sql = "SELECT id, spec, as_of, as_of_time, as_of_batch, position, scanned, matched, changed, \
               skipped, failed, ended_at FROM operation ORDER BY id";
    let (mut parts, mut unreadable) = (Vec::new(), Vec::new());
    for row in connection.fetch(Statement::new(sql, vec![])).await? {
        match operation(&row)? {
            Some(part) => parts.push(part),
            None => unreadable.push(OperationId(row.hash(0)?)),
        }
    }
    Ok((parts, unreadable))
}

fn operation(row: &Row) -> Result<Option<OperationRow>, StoreError> {
    let mut progress = OperationProgress {
        scanned: row.u64(6)?,
        matched: row.u64(7)?,
        changed: row.u64(8)?,
        skipped: row.u64(9)?,
        failed: row.u64(10)?,
        ended_at: row.optional_time(11)?,
        ..OperationProgress::begin(OperationKind::Purge, (row.seq(2)?, row.time(3)?, row.u64(4)?))
    };
    let spec = unpack_operation(&row.bytes(1)?);
    let is_read = unpack_position(&row.bytes(5)?, &mut progress);
    Ok(spec.filter(|_| is_read).map(|spec| OperationRow { spec, progress }))
}

async fn generations(connection: &dyn ReadConnection) -> Result<Vec<u64>, StoreError> {
    generations_of(&connection.fetch(Statement::new(connection.dialect().generations(), vec![])).await?)
}

/// The generations of the dedupe table, oldest first, from the names of tables.
pub(super) fn generations_of(rows: &[Row]) -> Result<Vec<u64>, StoreError> {
    let mut generations = Vec::new();
    for row in rows {
        let name = row.str(0)?;
        generations.extend(name.strip_prefix("dedupe_").and_then(|number| number.parse::<u64>().ok()));
    }
    generations.sort_unstable();
    Ok(generations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::value::Value;

    #[test]
    fn an_operation_of_a_later_program_is_not_read_and_fails_nothing() {
        use crate::operation::{OperationCursor, pack_operation};

        let cursor = pack_operation(&OperationCursor::first(OperationKind::Purge));
        let spec = "\0".repeat(300).into_bytes();
        let row = |spec: &[u8], position: &[u8]| {
            let mut values: Vec<Value> = vec![spec.into(), spec.into()];
            values.extend((0..3).map(|_| Value::Int(1)));
            values.push(position.into());
            values.extend((0..5).map(|_| Value::Int(2)));
            values.push(Value::Null);
            Row(values)
        };
        let read = operation(&row(&spec, &cursor)).unwrap().unwrap();
        assert_eq!((read.progress.failed, read.progress.ended_at, read.progress.estimated), (2, None, 0));
        for (spec, position) in [(&[9; 16][..], &cursor[..]), (&spec[..], b"\x09"), (b"", b"")] {
            assert!(operation(&row(spec, position)).unwrap().is_none());
        }
    }
}
