//! Reads a fake shard. By chance, a read sees the rows at its start or at its end.

use std::time::Duration;

use async_trait::async_trait;
use forebay_store::{
    DeadLetter, DeadRow, DeathRow, DedupeHit, DueRow, ErrorClass, ItemLocation, ItemRow, NameRange,
    NamespaceTally, ReadAhead, Reader, ReadyRow, ShardSnapshot, StoreError, StoredItem, Sweep, TopicRow,
    TopicTally, WalkedRow,
};
use forebay_types::{Body, Key, Seq, State, Timestamp, TopicId, TopicName};

use super::{db::Db, process::Process, store_bug::StoreBug, tables::Tables};

/// So long a read waits for a free connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// How often it looks for one.
const CONNECTION_POLL: Duration = Duration::from_millis(50);

/// Reads a shard.
pub(super) struct FakeReader {
    /// The shard.
    pub db: Db,
    /// The process that reads.
    pub process: Process,
}

impl FakeReader {
    /// Takes the time of a read. Returns what `look` saw at its start or at its end.
    async fn see<T>(&self, name: &str, look: impl Fn(&Tables) -> T) -> Result<T, StoreError> {
        let early = {
            let state = &mut *self.db.lock();
            let early = state.dice.chance(500);
            early.then(|| look(&state.tables))
        };
        self.connect(name).await?;
        self.db.operate(&self.process, name, |faults| faults.read_fails).await?;
        let seen = early.unwrap_or_else(|| look(&self.db.lock().tables));
        self.db.answer(&self.process).await;
        Ok(seen)
    }

    /// Waits for a free connection, for a while.
    async fn connect(&self, name: &str) -> Result<(), StoreError> {
        let mut waited = Duration::ZERO;
        while self.db.lock().faults.readers_busy {
            if waited >= CONNECTION_TIMEOUT {
                self.db.lock().coverage.without_connection += 1;
                self.db.note(&self.process, format_args!("{name}: no free connection"));
                return Err(StoreError::new(ErrorClass::NoConnection, "all connections are in use"));
            }
            self.db.pass(&self.process, CONNECTION_POLL).await;
            waited += CONNECTION_POLL;
        }
        Ok(())
    }

    /// Whether a planted bug strikes.
    fn has_bug(&self, bug: StoreBug, per_mille: u32) -> bool {
        let state = &mut *self.db.lock();
        state.bug == Some(bug) && state.dice.chance(per_mille)
    }
}

#[async_trait]
impl Reader for FakeReader {
    async fn load(&self, _ahead: ReadAhead) -> Result<ShardSnapshot, StoreError> {
        let mut snapshot = self.see("load", Tables::snapshot).await?;
        if self.has_bug(StoreBug::LeaseForgottenAtLoad, 1_000) {
            snapshot.leases.pop();
        }
        if self.has_bug(StoreBug::CountsForgottenAtLoad, 1_000) {
            snapshot.topics.iter_mut().for_each(|topic| topic.counts.ready = 0);
        }
        Ok(snapshot)
    }

    async fn tallies(&self, after: TopicId, limit: usize) -> Result<Vec<(TopicId, TopicTally)>, StoreError> {
        self.see("read of tallies", |tables| tables.tallies(after, limit)).await
    }

    async fn namespace_tallies(&self, after: &str, limit: usize) -> Result<Vec<NamespaceTally>, StoreError> {
        self.see("read of forgotten counts", |tables| tables.namespace_tallies_behind(after, limit)).await
    }

    async fn ready(
        &self,
        topic: TopicId,
        after: Key,
        limit: usize,
        max_bytes: usize,
    ) -> Result<Vec<ReadyRow>, StoreError> {
        let started = self.db.lock().tables.fence.batch;
        let past = self.has_bug(StoreBug::ReadShowsThePast, 1_000).then(|| {
            let state = &mut *self.db.lock();
            let all = state.tables.ready(topic, Key::MIN, usize::MAX, max_bytes);
            state.past.insert(topic, all)
        });
        let mut rows =
            self.see("read of ready items", |tables| tables.ready(topic, after, limit, max_bytes)).await?;
        if let Some(past) = past.flatten() {
            // The rows that the previous read saw.
            rows = past.into_iter().filter(|row| row.key > after).take(limit).collect();
        }
        let found = rows.len();
        self.db.note(
            &self.process,
            format_args!("read {found} of {limit} ready items of topic {} after {after:?}", topic.0),
        );
        let state = &mut *self.db.lock();
        state.coverage.raced += u64::from(state.tables.fence.batch > started);
        if state.bug == Some(StoreBug::ReadSkipsARow) && rows.len() > 1 && state.dice.chance(300) {
            rows.remove(0);
        }
        if state.bug == Some(StoreBug::BodyChanged) {
            rows.iter_mut().filter_map(|row| row.body.as_mut()).for_each(change);
        }
        Ok(rows)
    }

    async fn bodies(&self, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
        let body = |tables: &Tables, seq: &Seq| Some((*seq, tables.items.get(seq)?.body.clone()));
        let look = |tables: &Tables| seqs.iter().filter_map(|seq| body(tables, seq)).collect::<Vec<_>>();
        let mut found = self.see("read of bodies", look).await?;
        if self.has_bug(StoreBug::BodyChanged, 1_000) {
            found.iter_mut().for_each(|(_, body)| change(body));
        }
        Ok(found)
    }

    async fn due(
        &self,
        sweep: Sweep,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueRow>, StoreError> {
        let to =
            if self.has_bug(StoreBug::DueTooEarly, 1_000) { to.plus(Duration::from_secs(3)) } else { to };
        let rows = self.see("read of due items", |tables| tables.due(sweep, from, to, limit)).await?;
        self.db.lock().coverage.full_pages += u64::from(rows.len() == limit);
        Ok(rows)
    }

    async fn next_due(&self, sweep: Sweep, from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let look = |tables: &Tables| tables.sweep(sweep).range((from, Seq(0))..).next().map(|(at, _)| *at);
        let next = self.see("read of the next due time", look).await?;
        let early = self.has_bug(StoreBug::DueTooEarly, 1_000);
        Ok(if early { next.map(|at| at.minus(Duration::from_secs(3))) } else { next })
    }

    async fn dedupe(&self, generations: &[u64], hashes: &[[u8; 16]]) -> Result<Vec<DedupeHit>, StoreError> {
        let look = |tables: &Tables| {
            let mut hits = Vec::new();
            for keys in generations.iter().filter_map(|number| tables.generations.get(number)) {
                for hash in hashes {
                    if let Some((at, answer)) = keys.get(hash) {
                        hits.push(DedupeHit { hash: *hash, at: *at, answer: answer.clone() });
                    }
                }
            }
            hits
        };
        let hits = self.see("read of dedupe keys", look).await?;
        Ok(if self.has_bug(StoreBug::DedupeForgotten, 500) { Vec::new() } else { hits })
    }

    async fn locate(&self, seqs: &[Seq]) -> Result<Vec<ItemLocation>, StoreError> {
        let look = |tables: &Tables| {
            let namespace =
                |item: &ItemRow| tables.topics.get(&item.topic).map(|it| it.name.namespace.clone());
            let waiting = |seq: &Seq| tables.items.get(seq).and_then(namespace).map(ItemLocation::Waiting);
            let dead = |seq: &Seq| {
                tables.dead.get(seq).and_then(|(item, _)| namespace(item)).map(ItemLocation::DeadLetter)
            };
            let location = |seq: &Seq| waiting(seq).or_else(|| dead(seq)).unwrap_or(ItemLocation::Gone);
            seqs.iter().map(location).collect::<Vec<_>>()
        };
        self.see("lookup of items", look).await
    }

    async fn dormant_topics(&self, range: &NameRange, limit: usize) -> Result<Vec<TopicRow>, StoreError> {
        self.see("look at dormant topics", |tables| tables.dormant(range, limit)).await
    }

    async fn first_due(&self, topics: &[TopicId]) -> Result<Vec<(TopicId, Timestamp)>, StoreError> {
        let first = |tables: &Tables, topic: &TopicId| {
            let scheduled = tables.items.values().filter(|item| item.state == State::Scheduled);
            let ranks = scheduled.filter(|item| item.topic == *topic).map(|item| item.key.rank);
            ranks.min().map(|rank| (*topic, Timestamp::from_micros(rank)))
        };
        let look = |tables: &Tables| topics.iter().filter_map(|topic| first(tables, topic)).collect();
        self.see("look at what is due", look).await
    }

    async fn keys(
        &self,
        topic: TopicId,
        state: State,
        after: Key,
        limit: usize,
    ) -> Result<Vec<Key>, StoreError> {
        let look = |tables: &Tables| {
            let of_topic = tables.items.values().filter(|item| item.topic == topic && item.state == state);
            let mut keys: Vec<Key> = of_topic.map(|item| item.key).filter(|key| *key > after).collect();
            keys.sort_unstable();
            keys.truncate(limit);
            keys
        };
        self.see("look at keys", look).await
    }

    async fn dead_letters(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
    ) -> Result<Vec<(Timestamp, Seq)>, StoreError> {
        let look = |tables: &Tables| {
            let of_topic = tables.dead.values().filter(|(item, _)| item.topic == topic);
            let deaths = of_topic.map(|(item, letter)| (letter.died_at, item.key.seq));
            let mut deaths: Vec<_> = deaths.filter(|death| *death < before).collect();
            deaths.sort_unstable_by(|a, b| b.cmp(a));
            deaths.truncate(limit);
            deaths
        };
        self.see("look at dead letters", look).await
    }

    async fn dead_rows(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        self.see("look at dead letters", |tables: &Tables| tables.dead_rows(topic, before, limit)).await
    }

    async fn deaths(
        &self,
        topic: TopicId,
        before: (Timestamp, Seq),
        limit: usize,
        error_max: usize,
    ) -> Result<Vec<DeathRow>, StoreError> {
        let look = |tables: &Tables| {
            let of_topic = tables.dead.values().filter(|(item, _)| item.topic == topic);
            let mut deaths: Vec<&DeadLetter> = of_topic.map(|(_, letter)| letter).collect();
            deaths.retain(|letter| (letter.died_at, letter.seq) < before);
            deaths.sort_unstable_by_key(|letter| std::cmp::Reverse((letter.died_at, letter.seq)));
            let row = |letter: &DeadLetter| {
                let end = letter.last_error.floor_char_boundary(error_max);
                let last_error = letter.last_error[..end].to_owned();
                DeathRow {
                    died_at: letter.died_at,
                    seq: letter.seq,
                    cause: letter.reason.clone(),
                    last_error,
                }
            };
            deaths.into_iter().take(limit).map(row).collect()
        };
        self.see("look at deaths", look).await
    }

    async fn items(&self, seqs: &[Seq], payload_max: usize) -> Result<Vec<StoredItem>, StoreError> {
        let look = |tables: &Tables| seqs.iter().filter_map(|seq| tables.stored(*seq, payload_max)).collect();
        self.see("look at items", look).await
    }

    async fn walk_items(
        &self,
        topic: TopicId,
        state: State,
        after: Key,
        as_of: Seq,
        limit: usize,
    ) -> Result<Vec<WalkedRow>, StoreError> {
        self.see("walk over items", |tables| tables.walk_items(topic, state, after, as_of, limit)).await
    }

    async fn walk_dead(
        &self,
        name: &TopicName,
        after: (TopicId, Timestamp, Seq),
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<DeadRow>, StoreError> {
        self.see("walk over dead letters", |tables| tables.walk_dead(name, after, until, limit)).await
    }
}

fn change(body: &mut Body) {
    let mut bytes = body.payload.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    body.payload = bytes.into();
}
