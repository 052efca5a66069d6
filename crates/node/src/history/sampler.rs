//! Looks at the topics of this node once a second, or every ten seconds where there are many.

use std::{ops::Bound, time::Duration};

use forebay_engine::{Engine, TopicFigures};
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

    /// Waits for the next look, and returns what it saw.
    pub async fn next(&mut self, engine: &Engine) -> Vec<TopicFigures> {
        loop {
            self.ticks.tick().await;
            if self.pause > 0 {
                self.pause -= 1;
                continue;
            }
            // A node that owns no shard, or does not know it, has nothing to tell.
            let Some(topics) = look(engine).await else { continue };
            if topics.len() > FEW_TOPICS {
                self.pause = PAUSE;
            }
            return topics;
        }
    }
}

/// All topics in memory. `None`: the node owns no shard for certain.
async fn look(engine: &Engine) -> Option<Vec<TopicFigures>> {
    let mut topics = Vec::new();
    let mut from = Bound::Unbounded;
    loop {
        let slice = engine.topics_in_memory(from).await.ok().flatten()?;
        topics.extend(slice.topics);
        match slice.through {
            Some(last) if topics.len() < TOPICS_MAX => from = Bound::Excluded(last),
            _ => return Some(topics),
        }
    }
}
