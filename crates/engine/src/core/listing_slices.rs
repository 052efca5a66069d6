//! Lists the topics of shards that were taken over in the node's directory, and takes those of lost shards
//! out of it: in slices, because there may be a million.
//!
//! A shard is served from the moment at which it is taken over. A topic of it is listed in its turn, or as
//! soon as somebody asks for it. So to whoever asks, all topics are there.

use std::time::Duration;

use forebay_types::TopicName;

use super::{Core, topics::TopicPart, touch::Followers};
use crate::{
    index::ShardIndex,
    shard::{LostTopics, NamedTopic},
};

/// Topics between two looks at the clock.
const STEP: usize = 32;

impl Core {
    /// All topics of a shard are visited from now on: it was taken over, or takes part in the merge again, or
    /// no more.
    pub fn begin_walk(&mut self, index: ShardIndex) {
        if let Some(shard) = self.slots.owned_mut(index) {
            shard.begin_walk();
            self.listing.walking.insert(index);
        }
    }

    /// Visits a slice of the topics that are being visited, for so long at most, one shard after the other:
    /// polls that wait for them look again.
    pub fn walk(&mut self, limit: Duration) {
        let Self { slots, topics, active, prefixes, watchers, settings, listing, time, .. } = self;
        let mut followers = Followers { topics, active, prefixes, watchers };
        let until = time.monotonic().plus(limit);
        let mut left = settings.topics_per_turn;
        while left > 0
            && let Some(index) = listing.walking.first().copied()
        {
            let Some(shard) = slots.owned_mut(index) else {
                listing.walking.remove(&index);
                continue;
            };
            left -= shard.walk(left.min(STEP), |topic, name, is_new| {
                if is_new {
                    followers.topics.add_part(name.clone(), TopicPart { shard: index, topic });
                }
                followers.touch(name);
            });
            if !shard.is_walking() {
                listing.walking.remove(&index);
            }
            if time.monotonic() >= until {
                return;
            }
        }
    }

    /// Somebody asks for a topic: where it is not listed yet, it is from now on.
    pub fn list(&mut self, name: &TopicName) {
        let Self { slots, topics, listing, .. } = self;
        for index in listing.walking.iter().copied() {
            let Some(shard) = slots.owned_mut(index) else { continue };
            if let Some(NamedTopic { id: topic, name }) = shard.list(name) {
                topics.add_part(name, TopicPart { shard: index, topic });
            }
        }
    }

    /// A shard was lost: its topics leave the directory.
    pub fn begin_leaving(&mut self, index: ShardIndex, topics: LostTopics) {
        self.listing.walking.remove(&index);
        self.listing.leaving.push_back((index, topics));
        self.leave();
    }

    /// Takes a slice of a lost shard's topics out of the directory.
    pub fn leave(&mut self) {
        let most = self.settings.topics_per_turn;
        let Some((index, lost)) = self.listing.leaving.front_mut() else { return };
        let index = *index;
        let Some(slice) = lost.next_slice(most) else {
            let is_large = lost.is_large();
            let lost = self.listing.leaving.pop_front();
            // To let go of so much takes time, and is for nobody to wait for.
            if is_large {
                tokio::task::spawn_blocking(move || drop(lost));
            }
            return;
        };
        for NamedTopic { id: topic, name } in slice {
            // The shard may have been taken over again, and the topic listed anew.
            let is_back = self.slots.owned(index).is_some_and(|shard| shard.is_listed(topic));
            if !is_back {
                self.topics.remove_part(&name, TopicPart { shard: index, topic });
                self.touch(&name);
            }
        }
    }
}
