//! ListTopics: a page of the topics of this node's shards, by name.
//!
//! Topics in memory come from the event loop in slices. Topics that hold nothing but dead letters, and that
//! memory has forgotten, are read from the store, in the same range of names.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    ops::Bound,
};

use forebay_store::NameRange;
use forebay_types::{Namespace, Refusal, ShardId, TopicId, TopicName};
use futures_util::{StreamExt as _, stream};

use super::{caller, read};
use crate::{
    api::{LifetimeCounts, MemorySlice, OwnMetrics, Rates, TopicFigures, TopicScope, TopicsCall, TopicsPage},
    engine::Engine,
    messages::{
        event::Event,
        look::{PartSnapshot, ShardLook, TopicSnapshot, TopicsSlice, TopicsSnapshot},
    },
};

/// Topics that one event looks at.
const SLICE: usize = 128;
/// Topics that one page looks at.
const LOOKED_AT_MAX: usize = 50_000;
/// Shards that one page reads at a time.
const SHARDS_AT_ONCE: usize = 16;
/// Scheduled items of one shard that one page looks at, to learn when the next ones are due.
const DUE_LOOKED_AT_MAX: u64 = 50_000;

/// A topic of one shard.
type Part = (ShardId, TopicId);

/// A page while it is put together.
#[derive(Default)]
pub(super) struct Page {
    /// Its topics.
    topics: BTreeMap<TopicName, TopicFigures>,
    /// Where topics in memory are, and how many scheduled items they have there.
    parts: HashMap<Part, (TopicName, u64)>,
    /// All up to this one are known. `None`: all are.
    through: Option<TopicName>,
    /// How many were looked at.
    scanned: usize,
}

impl Engine {
    /// The shards that this node can look at.
    pub(super) async fn look_shards(&self, scope: &TopicScope) -> Result<Vec<ShardLook>, Refusal> {
        let caller = caller(scope.namespace.as_ref());
        self.ask(|reply| Event::LookShards { caller, reply }).await
    }

    /// A slice of the topics in memory. `waited`: also of those without a row that polls wait for.
    pub(super) async fn look_topics(
        &self,
        scope: &TopicScope,
        from: Bound<TopicName>,
        waited: bool,
        most: usize,
    ) -> Result<TopicsSnapshot, Refusal> {
        let (caller, scope) = (caller(scope.namespace.as_ref()), scope.clone());
        let slice = TopicsSlice { caller, scope, from, waited, most };
        self.ask(|reply| Event::LookTopics { slice, reply }).await
    }

    /// The shards that this node can look at.
    pub async fn owned_shards(&self, caller: Namespace) -> Result<Vec<ShardId>, Refusal> {
        let shards = self.ask(|reply| Event::LookShards { caller, reply }).await?;
        Ok(shards.into_iter().map(|shard| shard.id).collect())
    }

    /// A slice of the topics in memory that have a row, of all namespaces, by name. `None`: the node owns no
    /// shard for certain.
    pub async fn topics_in_memory(&self, from: Bound<TopicName>) -> Result<Option<MemorySlice>, Refusal> {
        let scope = TopicScope { namespace: None, prefix: String::new() };
        if from == Bound::Unbounded && self.look_shards(&scope).await?.is_empty() {
            return Ok(None);
        }
        let TopicsSnapshot { topics, shards, through, .. } =
            self.look_topics(&scope, from, false, SLICE).await?;
        let topics = topics.into_iter().map(|topic| topic.figures).collect();
        Ok(Some(MemorySlice { topics, shards, through }))
    }

    /// Lists topics of this node's shards.
    pub async fn list_topics(&self, call: TopicsCall) -> Result<TopicsPage, Refusal> {
        let TopicsCall { scope, after, limit, due, forgotten } = call;
        let before = self.look_shards(&scope).await?;
        let from = scope.begin(after.as_ref());
        let (mut page, mut missed) = self.in_memory(&scope, from, limit).await?;
        // A topic may have left memory just before its slice, as the first one of its shard.
        let before: BTreeSet<_> = before.iter().map(|shard| (shard.id, shard.term)).collect();
        let mut shards = self.look_shards(&scope).await?;
        shards.retain(|shard| before.contains(&(shard.id, shard.term)));
        let range = NameRange {
            from: scope.begin(after.as_ref()),
            through: page.through.clone().or_else(|| scope.end()),
        };
        missed.extend(page.add_dormant(&shards, &scope, range, limit).await);
        if forgotten {
            let from = scope.begin(after.as_ref());
            missed.extend(self.add_forgotten(&mut page, &shards, &scope, from, limit).await?);
        }
        page.cut(limit);
        if due {
            page.add_due(&shards).await;
        }
        let looked_at = || shards.iter().filter(|shard| !missed.contains(&shard.id));
        let counted = looked_at().filter(|shard| forgotten && shard.has_tallies);
        Ok(TopicsPage {
            counted: counted.map(|shard| shard.id).collect(),
            shards: looked_at().map(|shard| shard.id).collect(),
            topics: page.topics.into_values().collect(),
            through: page.through,
            scanned: page.scanned,
        })
    }

    /// The topics in memory, and shards that were lost meanwhile.
    async fn in_memory(
        &self,
        scope: &TopicScope,
        mut from: Bound<TopicName>,
        limit: usize,
    ) -> Result<(Page, BTreeSet<ShardId>), Refusal> {
        let mut page = Page::default();
        let mut lost = BTreeSet::new();
        loop {
            let seen = self.look_topics(scope, from, true, SLICE).await?;
            lost.extend(seen.doubtful);
            page.scanned += seen.looked_at;
            page.through.clone_from(&seen.through);
            for TopicSnapshot { figures, parts } in seen.topics {
                let part =
                    |part: PartSnapshot| ((part.shard, part.topic), (figures.name.clone(), part.scheduled));
                page.parts.extend(parts.into_iter().map(part));
                page.topics.insert(figures.name.clone(), figures);
            }
            match seen.through {
                Some(last) if page.topics.len() < limit && page.scanned < LOOKED_AT_MAX => {
                    from = Bound::Excluded(last);
                }
                _ => return Ok((page, lost)),
            }
        }
    }
}

impl Page {
    /// Adds the dormant topics of a range. Returns the shards that could not be read.
    async fn add_dormant(
        &mut self,
        shards: &[ShardLook],
        scope: &TopicScope,
        range: NameRange,
        limit: usize,
    ) -> Vec<ShardId> {
        let mut reads = Vec::new();
        for shard in shards.iter().filter(|shard| shard.has_dormant).cloned() {
            let range = range.clone();
            reads.push(async move {
                let rows = read(&shard, |it| async move { it.dormant_topics(&range, limit).await }).await;
                (shard.id, rows)
            });
        }
        let found: Vec<_> = stream::iter(reads).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        let mut missed = Vec::new();
        for (shard, rows) in found {
            let Some(rows) = rows else {
                missed.push(shard);
                continue;
            };
            self.scanned += rows.len();
            if let Some(last) = rows.last().filter(|_| rows.len() >= limit) {
                self.cut_at(last.name.clone());
            }
            // One that only looks dormant is in memory, too.
            let dormant = rows.into_iter().filter(|row| !self.parts.contains_key(&(shard, row.id)));
            for row in dormant.filter(|row| scope.contains(&row.name)) {
                let figures = self.topics.entry(row.name).or_insert_with_key(|name| empty(name.clone()));
                figures.dead += u64::try_from(row.counts.dead).unwrap_or(0);
            }
        }
        missed
    }

    /// All up to this one are known. `None`: all are.
    pub fn through(&self) -> Option<TopicName> {
        self.through.clone()
    }

    /// Ends the page at a name, since topics behind it are not known of all shards.
    pub fn cut_at(&mut self, last: TopicName) {
        self.through = Some(self.through.take().map_or(last.clone(), |through| through.min(last)));
    }

    /// Adds the counts of a topic.
    pub fn count(&mut self, name: TopicName, counted: LifetimeCounts) {
        let figures = self.topics.entry(name).or_insert_with_key(|name| empty(name.clone()));
        match &mut figures.counted {
            Some(sum) => *sum += counted,
            None => figures.counted = Some(counted),
        }
    }

    /// Keeps what is known for certain, and no more than so many.
    fn cut(&mut self, limit: usize) {
        let Self { topics, through, .. } = self;
        if let Some(last) = through.clone() {
            topics.retain(|name, _| *name <= last);
        }
        if let Some(last) = topics.keys().nth(limit.saturating_sub(1)).filter(|_| topics.len() > limit) {
            let last = last.clone();
            topics.retain(|name, _| *name <= last);
            *through = Some(last);
        }
    }

    /// Finds out when the next items are due. Each shard looks at topics with few scheduled items first, and
    /// then at no more of them. What is not known of all of its shards is not said of a topic.
    async fn add_due(&mut self, shards: &[ShardLook]) {
        let mut of_shard: HashMap<ShardId, Vec<(u64, TopicId)>> = HashMap::new();
        let mut unknown: HashSet<Part> = HashSet::new();
        for (part, (name, scheduled)) in &self.parts {
            if *scheduled > 0 && self.topics.contains_key(name) {
                of_shard.entry(part.0).or_default().push((*scheduled, part.1));
                unknown.insert(*part);
            }
        }
        let mut reads = Vec::new();
        for shard in shards.iter().cloned() {
            let Some(topics) = of_shard.remove(&shard.id) else { continue };
            let few = few_scheduled(topics);
            reads.push(async move {
                let asked = few.clone();
                let found = read(&shard, |it| async move { it.first_due(&asked).await }).await;
                (shard.id, few, found)
            });
        }
        let answers: Vec<_> = stream::iter(reads).buffer_unordered(SHARDS_AT_ONCE).collect().await;
        for (shard, asked, found) in answers {
            let Some(found) = found else { continue };
            unknown.retain(|(of, topic)| *of != shard || !asked.contains(topic));
            for (topic, due) in found {
                let part = self.parts.get(&(shard, topic));
                if let Some(figures) = part.and_then(|(name, _)| self.topics.get_mut(name)) {
                    figures.next_due_at = figures.next_due_at.into_iter().chain([due]).min();
                }
            }
        }
        for part in unknown {
            let name = self.parts.get(&part).map(|(name, _)| name);
            if let Some(figures) = name.and_then(|name| self.topics.get_mut(name)) {
                figures.next_due_at = None;
            }
        }
    }
}

/// The topics that have few scheduled items together.
fn few_scheduled(mut topics: Vec<(u64, TopicId)>) -> Vec<TopicId> {
    topics.sort_unstable();
    let mut left = DUE_LOOKED_AT_MAX;
    let few = topics.into_iter().map_while(|(scheduled, topic)| {
        left = left.checked_sub(scheduled)?;
        Some(topic)
    });
    few.collect()
}

/// A topic of which nothing is known yet.
pub(super) fn empty(name: TopicName) -> TopicFigures {
    TopicFigures {
        name,
        ready: 0,
        leased: 0,
        scheduled: 0,
        dead: 0,
        oldest_ready_at: None,
        next_due_at: None,
        waiting: 0,
        counted: None,
        rates: Rates::default(),
        latencies: None,
        last_delivery_at: None,
        last_ack_at: None,
        paused: [false; 2],
        reported: OwnMetrics::default(),
    }
}
