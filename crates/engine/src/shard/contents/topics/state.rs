//! One topic of one shard. There may be a million, so it is as small as it can be.

use forebay_store::{Tally, TopicCounts, TopicTally};
use forebay_types::{Monotonic, Timestamp, TopicName};

use super::rates::RecentFlow;
use crate::shard::contents::ready::window::Window;

/// How many items a refill of a window begins with.
pub(super) const FILL_MIN: u16 = 64;
/// The most that a refill reads at once.
const FILL_MAX: u16 = 2_000;

/// When something happened last, since the shard was taken over: in seconds since the Unix epoch, which last
/// until 2106 and take half of what a time takes. 0: it did not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LastTimes {
    /// A delivery began.
    delivery: u32,
    /// A delivery was acked. One that is at most once is acked as it begins.
    ack: u32,
}

impl LastTimes {
    /// A delivery began.
    pub(super) fn delivered(&mut self, at: Timestamp) {
        self.delivery = seconds(at);
    }

    /// A delivery was acked.
    pub(super) fn acked(&mut self, at: Timestamp) {
        self.ack = seconds(at);
    }

    /// The later ones of two shards.
    pub fn later(self, other: Self) -> Self {
        Self { delivery: self.delivery.max(other.delivery), ack: self.ack.max(other.ack) }
    }

    /// When a delivery began last.
    pub fn delivery(self) -> Option<Timestamp> {
        time(self.delivery)
    }

    /// When one was acked last.
    pub fn ack(self) -> Option<Timestamp> {
        time(self.ack)
    }
}

fn seconds(at: Timestamp) -> u32 {
    u32::try_from(at.as_micros() / 1_000_000).unwrap_or(0)
}

fn time(seconds: u32) -> Option<Timestamp> {
    (seconds > 0).then(|| Timestamp::from_micros(i64::from(seconds) * 1_000_000))
}

/// One topic of one shard.
#[derive(Debug)]
pub(crate) struct TopicState {
    /// Its name. The memory of the name is shared with the node's topic directory.
    pub name: TopicName,
    /// How many items it has. Changed through the table alone, which keeps their sum.
    pub(in crate::shard) counts: TopicCounts,
    /// The tally of its items, as far as it is read. `None`: nothing was counted.
    pub(super) tally: Option<TopicTally>,
    /// How much happened lately.
    pub(super) recent: RecentFlow,
    /// When something was delivered last, and acked.
    pub(super) last: LastTimes,
    /// Items that have left the window, on their way to a lease.
    pub reserved: u32,
    /// At-most-once items that nobody received and that are to be inserted again.
    pub restores: u32,
    /// Its ready index. Changed through the table alone, which keeps account of its bytes.
    pub(super) window: Window,
    /// Since when a demand waits for the read under way.
    pub outstanding_since: Option<Monotonic>,
    /// How many items the next refill asks for.
    pub fill: u16,
    /// The first batch whose delta is not folded into the topic's row yet.
    pub dirty_since: Option<u64>,
    /// Since when it has had no item.
    pub(super) idle_since: Option<Monotonic>,
    /// Its part is in the node's topic directory.
    pub(in crate::shard) listed: bool,
    /// It is in the list of changed topics.
    pub(super) changed: bool,
}

impl TopicState {
    /// A topic with this name. Its window is told what it needs to know by the caller.
    pub fn new(name: TopicName, counts: TopicCounts, window: Window) -> Self {
        Self {
            name,
            counts,
            tally: None,
            recent: RecentFlow::default(),
            last: LastTimes::default(),
            reserved: 0,
            restores: 0,
            window,
            outstanding_since: None,
            fill: FILL_MIN,
            dirty_since: None,
            idle_since: None,
            listed: true,
            changed: false,
        }
    }

    /// How many items it has.
    pub fn counts(&self) -> &TopicCounts {
        &self.counts
    }

    /// The tally of its items so far. Open deliveries are not in it.
    pub fn tally(&self) -> Option<TopicTally> {
        self.tally
    }

    /// Adds the tally from before the take-over.
    pub fn add_stored(&mut self, stored: TopicTally) {
        if stored.tally == Tally::default() {
            return;
        }
        match &mut self.tally {
            Some(tally) => *tally += stored,
            None => self.tally = Some(stored),
        }
    }

    /// How much happens in it.
    pub fn recent(&self) -> RecentFlow {
        self.recent
    }

    /// When something was delivered last, and acked.
    pub fn last(&self) -> LastTimes {
        self.last
    }

    /// Its ready index.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The window ran empty. The faster a topic is drained, the more is read ahead.
    pub fn grow_fill(&mut self) {
        self.fill = (self.fill * 2).min(FILL_MAX);
    }

    /// The window was cut for want of memory.
    pub fn shrink_fill(&mut self) {
        self.fill = (self.fill / 2).max(FILL_MIN);
    }

    /// It has no item. It may have dead letters.
    pub fn is_empty(&self) -> bool {
        (self.counts.ready, self.counts.scheduled) == (0, 0)
    }

    /// Its row has to be kept.
    pub fn has_dead_letters(&self) -> bool {
        self.counts.dead != 0
    }

    /// Nothing is under way that needs it.
    pub fn is_unused(&self) -> bool {
        self.is_empty() && self.reserved == 0 && self.restores == 0 && !self.window.is_reading()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic() -> TopicState {
        TopicState::new(TopicName::new("ns", "t"), TopicCounts::default(), Window::complete())
    }

    #[test]
    fn a_refill_grows_with_demand_and_shrinks_with_memory() {
        let mut topic = topic();
        let grown: Vec<u16> = (0..6)
            .map(|_| {
                topic.grow_fill();
                topic.fill
            })
            .collect();
        assert_eq!(grown, [128, 256, 512, 1_024, 2_000, 2_000]);
        (0..9).for_each(|_| topic.shrink_fill());
        assert_eq!(topic.fill, FILL_MIN);
    }
}
