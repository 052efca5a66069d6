//! Reads the topics of a shard, with their counts: for a new owner, or ahead of its take-over.

use std::collections::{BTreeMap, HashMap, HashSet};

use forebay_types::{Namespace, Timestamp, TopicId, TopicName};
use futures_util::future::{join, try_join3};

use crate::{
    error::StoreError,
    read_ahead::{ReadAhead, ReadTopic},
    rows::{ShardSnapshot, TopicCounts, TopicRow},
    sql::{
        pack, row_counts,
        statement::{ReadConnection, Statement, scalar},
        value::Row,
    },
    tally::{Tally, TopicTally},
};

/// Topics that are read at once. There may be a million, and a page is in memory twice.
const TOPICS_PER_PAGE: u32 = 5_000;
/// Rows that tell of dead letters alone.
pub(super) const DEAD_ALONE: &str = "ready = 0 AND scheduled = 0 AND dead > 0";
/// Rows that are dormant unless later deltas say otherwise. There may be many, so they are not read. A topic
/// that becomes dormant leaves its tally to its namespace.
const DORMANT: &str = "ready = 0 AND scheduled = 0 AND dead > 0 AND tally IS NULL";
/// Columns that are read of each topic.
const TOPIC: &str = "id, namespace, name, ready, scheduled, dead, counted_at";

/// Reads topics.
#[derive(Default)]
struct TopicReader {
    /// One string a namespace.
    namespaces: HashSet<Namespace>,
}

impl TopicReader {
    /// Reads the topics that are not dormant and were counted in a batch or later, by their numbers, and
    /// those with dead letters alone: a program of before makes such ones dormant, and does not note every
    /// change.
    async fn read_awake(
        &mut self,
        connection: &dyn ReadConnection,
        since: u64,
    ) -> Result<Vec<ReadTopic>, StoreError> {
        let sql = format!(
            "SELECT {TOPIC} FROM topic WHERE id > ? AND (counted_at >= ? OR {DEAD_ALONE}) \
             AND NOT ({DORMANT}) \
             ORDER BY id LIMIT ?"
        );
        let page_after = |after: TopicId| {
            let values = vec![after.into(), since.into(), TOPICS_PER_PAGE.into()];
            connection.fetch(Statement::new(sql.clone(), values))
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

/// Reads the topics while another node owns the shard. See [`ReadAhead`] for what is left out.
pub(super) async fn read_ahead(connection: &dyn ReadConnection) -> Result<ReadAhead, StoreError> {
    let fence = connection.fetch(Statement::new("SELECT batch FROM fence WHERE id = 1", vec![])).await?;
    let since = scalar(fence, "the fence")?.u64(0)?;
    let mut topics = TopicReader::default().read_awake(connection, 0).await?;
    topics.retain(|topic| topic.counted_at < since && !has_dead_alone(topic));
    Ok(ReadAhead { server: connection.server().to_owned(), since, topics })
}

/// The topic's row tells of dead letters alone.
fn has_dead_alone(topic: &ReadTopic) -> bool {
    let TopicCounts { ready, scheduled, dead } = topic.row.counts;
    (ready, scheduled) == (0, 0) && dead > 0
}

/// Leaves out topics that a program of before made dormant, and whose names are those of newer topics by now.
/// Returns how many dead letters they have.
fn leave_out_namesakes(topics: &mut Vec<ReadTopic>) -> i64 {
    let suspects = topics.iter().filter(|topic| has_dead_alone(topic));
    let mut newest: HashMap<TopicName, TopicId> =
        suspects.map(|topic| (topic.row.name.clone(), topic.row.id)).collect();
    if newest.is_empty() {
        return 0;
    }
    for topic in topics.iter() {
        if let Some(id) = newest.get_mut(&topic.row.name) {
            *id = topic.row.id.max(*id);
        }
    }
    let is_older = |topic: &ReadTopic| newest.get(&topic.row.name).is_some_and(|id| *id > topic.row.id);
    let mut dead = 0;
    topics.retain(|topic| {
        let leaves = has_dead_alone(topic) && is_older(topic);
        dead += if leaves { topic.row.counts.dead } else { 0 };
        !leaves
    });
    dead
}

/// Sums over all topics.
struct Sums {
    /// Dead letters of rows that look dormant.
    dormant_dead: i64,
    /// The last batch that has counted a topic.
    last_fold: u64,
    /// Topics with more than dead letters that were counted before a batch.
    unchanged: usize,
}

async fn sums(connection: &dyn ReadConnection, since: u64) -> Result<Sums, StoreError> {
    let sql = format!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN {DORMANT} THEN dead ELSE 0 END), 0) AS SIGNED), \
                COALESCE(MAX(counted_at), 0), \
                COUNT(CASE WHEN counted_at < ? AND NOT ({DEAD_ALONE}) THEN 1 END) FROM topic"
    );
    let row = scalar(connection.fetch(Statement::new(sql, vec![since.into()])).await?, "sums of topics")?;
    let unchanged = usize::try_from(row.u64(2)?).unwrap_or(usize::MAX);
    Ok(Sums { dormant_dead: row.int(0)?, last_fold: row.u64(1)?, unchanged })
}

/// Returns the topics that were read ahead, with their changes since. `unchanged`: how many topics were not
/// written since. If fewer than were read are left beside the changed ones, some were dropped, or have become
/// dormant.
async fn with_changes(
    connection: &dyn ReadConnection,
    ahead: ReadAhead,
    changed: Vec<ReadTopic>,
    unchanged: usize,
) -> Result<Vec<ReadTopic>, StoreError> {
    let ReadAhead { since, mut topics, .. } = ahead;
    let (mut replaced, mut new) = (0, Vec::new());
    for topic in changed {
        match place_of(&topics, topic.row.id) {
            Some(place) => {
                topics[place] = topic;
                replaced += 1;
            }
            None => new.push(topic),
        }
    }
    if topics.len() - replaced != unchanged {
        let sql = format!("SELECT id FROM topic WHERE counted_at < ? AND NOT ({DEAD_ALONE})");
        let rows = connection.fetch(Statement::new(sql, vec![since.into()])).await?;
        let left = rows.iter().map(|row| row.topic(0)).collect::<Result<HashSet<_>, _>>()?;
        topics.retain(|topic| topic.counted_at >= since || left.contains(&topic.row.id));
    }
    topics.extend(new);
    // New topics have the highest numbers. Those that were dormant may have any.
    if !topics.is_sorted_by_key(|topic| topic.row.id) {
        topics.sort_unstable_by_key(|topic| topic.row.id);
    }
    Ok(topics)
}

/// Adds the deltas of later batches to each topic's own counts, and tells which topics had some. The shard
/// was taken over, so nobody changes anything between two pages.
pub(super) async fn topics(
    connection: &dyn ReadConnection,
    ahead: ReadAhead,
    snapshot: &mut ShardSnapshot,
) -> Result<(), StoreError> {
    let ahead = if ahead.server == connection.server() { ahead } else { ReadAhead::default() };
    let mut reader = TopicReader::default();
    // Two scans of the table, beside each other.
    let (deltas, sums, changed) = try_join3(
        deltas(connection),
        sums(connection, ahead.since),
        reader.read_awake(connection, ahead.since),
    )
    .await?;
    let Sums { dormant_dead, last_fold, unchanged } = sums;
    snapshot.dormant_dead = dormant_dead;
    let mut topics = with_changes(connection, ahead, changed, unchanged).await?;
    snapshot.dormant_dead += leave_out_namesakes(&mut topics);

    // Rows that look dormant, and have later deltas.
    let mut changed_at: BTreeMap<TopicId, u64> = BTreeMap::new();
    for (batch, of_batch) in &deltas {
        let others = of_batch.topics().filter(|id| place_of(&topics, *id).is_none());
        changed_at.extend(others.map(|id| (id, *batch)));
    }
    let mut awake = Vec::new();
    for ids in row_counts::key_lists(changed_at.keys().copied().collect()) {
        let places = row_counts::placeholders(ids.len());
        let sql = format!("SELECT {TOPIC} FROM topic WHERE id IN ({places})");
        let values = ids.into_iter().map(Into::into).collect();
        for row in connection.fetch(Statement::new(sql, values)).await? {
            awake.push(reader.decode_row(&row)?);
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
    let sql = "SELECT id, tally FROM topic WHERE id > ? AND tally IS NOT NULL ORDER BY id LIMIT ?";
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

/// Changes of the counts by a batch.
struct BatchDeltas {
    /// How many items topics have.
    counts: Vec<(TopicId, TopicCounts)>,
    /// Changes of their tallies.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(id: u32, name: &str, ready: i64, dead: i64) -> ReadTopic {
        let name = TopicName { namespace: "shop".into(), topic: name.into() };
        let counts = TopicCounts { ready, scheduled: 0, dead };
        let row = TopicRow { id: TopicId(id), name, counts };
        ReadTopic { row, tally: None, counted_at: 0, unfolded: false }
    }

    #[test]
    fn a_dormant_topic_gives_way_to_a_newer_one_of_its_name() {
        let mut topics = vec![
            topic(1, "mail", 0, 3),
            topic(2, "mail", 0, 4),
            topic(3, "other", 0, 5),
            topic(4, "mail", 1, 6),
            topic(5, "busy", 2, 7),
            topic(6, "busy", 0, 8),
        ];
        assert_eq!(leave_out_namesakes(&mut topics), 3 + 4);
        let left: Vec<u32> = topics.iter().map(|topic| topic.row.id.0).collect();
        // One with items is never left out, nor the newest of its name.
        assert_eq!(left, [3, 4, 5, 6]);
        assert_eq!(leave_out_namesakes(&mut topics), 0);
    }
}
