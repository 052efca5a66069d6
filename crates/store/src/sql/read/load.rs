//! Reads what a new owner needs. The items themselves are not read.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use forebay_types::{Timestamp, TopicId, TopicName};
use futures_util::future::join;

use crate::{
    error::StoreError,
    operation::{
        OperationCursor, OperationId, OperationKind, OperationProgress, OperationRow, unpack_operation,
        unpack_position,
    },
    rows::{Checkpoint, LeaseRow, ShardSnapshot, Sweep, TopicCounts, TopicRow},
    sql::{
        pack, row_counts,
        statement::{ReadConnection, Statement, scalar},
        value::{Row, corrupt},
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
/// What is read of a topic.
const TOPIC: &str = "SELECT id, namespace, name, ready, scheduled, dead, counted_at, tally FROM topic";

/// Reads topics, with the batch as of which each one's counts are.
#[derive(Default)]
struct TopicReader {
    /// One string a namespace.
    namespaces: HashMap<String, Arc<str>>,
    /// The tallies of those that were read.
    tallies: BTreeMap<TopicId, TopicTally>,
}

impl TopicReader {
    /// Reads all topics that are not dormant, by their numbers.
    async fn read_awake(
        &mut self,
        connection: &dyn ReadConnection,
    ) -> Result<Vec<(TopicRow, u64)>, StoreError> {
        let sql = format!("{TOPIC} WHERE id > ? AND NOT ({DORMANT}) ORDER BY id LIMIT ?");
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

    fn decode(&mut self, rows: &[Row]) -> Result<Vec<(TopicRow, u64)>, StoreError> {
        rows.iter().map(|row| self.decode_row(row)).collect()
    }

    fn decode_row(&mut self, row: &Row) -> Result<(TopicRow, u64), StoreError> {
        let namespace = row.text(1)?;
        let namespace = self.namespaces.entry(namespace).or_insert_with_key(|name| Arc::from(name.as_str()));
        let counts = TopicCounts { ready: row.int(3)?, scheduled: row.int(4)?, dead: row.int(5)? };
        let name = TopicName::new(namespace.clone(), row.text(2)?);
        let id = row.topic(0)?;
        if let Some(tally) = row.optional_bytes(7)? {
            self.tallies.insert(id, pack::unpack_tally(&tally)?);
        }
        Ok((TopicRow { id, name, counts }, row.u64(6)?))
    }
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
    let last_fold = topics.iter().map(|(_, counted_at)| *counted_at).max().unwrap_or(0).max(row.u64(1)?);

    // Rows that look dormant, and have later deltas.
    let mut changed_at: BTreeMap<TopicId, u64> = BTreeMap::new();
    for (batch, of_batch) in &deltas {
        changed_at.extend(of_batch.topics().map(|id| (id, *batch)));
    }
    let is_read = |id: &TopicId| topics.binary_search_by_key(id, |(row, _)| row.id).is_ok();
    let others = changed_at.keys().copied().filter(|id| !is_read(id)).collect();
    let mut awake = Vec::new();
    for ids in row_counts::key_lists(others) {
        let sql = format!("{TOPIC} WHERE id IN ({})", row_counts::placeholders(ids.len()));
        let values = ids.into_iter().map(Into::into).collect();
        awake.extend(reader.decode(&connection.fetch(Statement::new(sql, values)).await?)?);
    }
    awake.retain(|(row, counted_at)| changed_at.get(&row.id) > Some(counted_at));
    snapshot.dormant_dead -= awake.iter().map(|(row, _)| row.counts.dead).sum::<i64>();
    topics.extend(awake);
    topics.sort_unstable_by_key(|(row, _)| row.id);

    // Without any delta, all up to the last fold are gone.
    snapshot.deltas_from = deltas.first().map_or(last_fold, |(batch, _)| *batch);
    let mut unfolded = BTreeSet::new();
    let mut tallies = std::mem::take(&mut reader.tallies);
    for (batch, of_batch) in deltas {
        // Older deltas may name a topic that was dropped since, or is dormant.
        let later = |topics: &[(TopicRow, u64)], id: TopicId| {
            let at = topics.binary_search_by_key(&id, |(row, _)| row.id).ok()?;
            (batch > topics[at].1).then_some(at)
        };
        for (id, delta) in of_batch.counts {
            let Some(at) = later(&topics, id) else { continue };
            topics[at].0.counts += delta;
            unfolded.insert(id);
        }
        for (id, delta) in of_batch.tallies {
            if later(&topics, id).is_some() {
                let new = TopicTally { since: of_batch.at, tally: Tally::default() };
                tallies.entry(id).or_insert(new).tally += delta;
                unfolded.insert(id);
            }
        }
    }
    let is_known = |id: &TopicId| topics.binary_search_by_key(id, |(row, _)| row.id).is_ok();
    snapshot.tallies = tallies.into_iter().filter(|(id, _)| is_known(id)).collect();
    snapshot.topics = topics.into_iter().map(|(row, _)| row).collect();
    snapshot.unfolded = unfolded.into_iter().collect();
    Ok(())
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
        let id = <[u8; 16]>::try_from(&*row.bytes(0)?).map_err(|_| corrupt("an operation's id"))?;
        match operation(&row)? {
            Some(part) => parts.push(part),
            None => unreadable.push(OperationId(id)),
        }
    }
    Ok((parts, unreadable))
}

fn operation(row: &Row) -> Result<Option<OperationRow>, StoreError> {
    let mut progress = OperationProgress {
        as_of: row.seq(2)?,
        as_of_time: row.time(3)?,
        as_of_batch: row.u64(4)?,
        cursor: OperationCursor::first(OperationKind::Purge),
        scanned: row.u64(6)?,
        matched: row.u64(7)?,
        changed: row.u64(8)?,
        skipped: row.u64(9)?,
        failed: row.u64(10)?,
        ended_at: row.optional_time(11)?,
        failure: None,
        estimated: 0,
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
        let name = row.text(0)?;
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
