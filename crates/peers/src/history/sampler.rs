//! Looks at the topics of this node once a second, or every ten seconds where there are many.

use std::{collections::BTreeMap, ops::Bound, time::Duration};

use forebay_engine::{Engine, ShardFigures, TopicFigures};
use forebay_types::ShardId;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// With more topics than so many it looks at every tenth time alone: a look takes the event loop some 0.8 µs
/// a topic, so less than a hundredth of its time.
const FEW_TOPICS: usize = 2_000;
/// How many times are left out then.
const PAUSE: u32 = 9;
/// Topics of one look. Of more the first ones by name are looked at.
const TOPICS_MAX: usize = 50_000;

/// Figures that a look saw.
pub(crate) struct Sample {
    /// Topics in memory, by name.
    pub topics: Vec<TopicFigures>,
    /// Shards, as far as topics are in memory.
    pub shards: BTreeMap<ShardId, ShardFigures>,
    /// There are more topics than these.
    pub cut: bool,
    /// For so many seconds from now on it does not look again.
    pub holds: u64,
}

/// Looks again and again.
pub struct Sampler {
    /// When it looks.
    ticks: Interval,
    /// How many times are left out now.
    pause: u32,
}

impl Sampler {
    /// It has not looked yet.
    pub fn new() -> Self {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self { ticks, pause: 0 }
    }

    /// Waits for the next look, and returns what it saw. `None`: the node owns no shard, or does not know it.
    pub async fn next(&mut self, engine: &Engine) -> Option<Sample> {
        loop {
            self.ticks.tick().await;
            if self.pause > 0 {
                self.pause -= 1;
                continue;
            }
            let mut seen = look(engine).await?;
            if seen.topics.len() > FEW_TOPICS {
                self.pause = PAUSE;
                seen.holds = PAUSE.into();
            }
            return Some(seen);
        }
    }
}

/// All topics in memory. `None`: the node owns no shard for certain.
async fn look(engine: &Engine) -> Option<Sample> {
    let mut seen = Sample { topics: Vec::new(), shards: BTreeMap::new(), cut: false, holds: 0 };
    let mut from = Bound::Unbounded;
    loop {
        let slice = engine.topics_in_memory(from).await.ok().flatten()?;
        seen.topics.extend(slice.topics);
        for (shard, figures) in slice.shards {
            *seen.shards.entry(shard).or_default() += figures;
        }
        match slice.through {
            Some(last) if seen.topics.len() < TOPICS_MAX => from = Bound::Excluded(last),
            more => return Some(Sample { cut: more.is_some(), ..seen }),
        }
    }
}
