//! Rows of a shard that a candidate reads before it takes it over, so that the take-over has less to read.

use crate::{rows::TopicRow, tally::TopicTally};

/// A shard's topics, as they were read while another node owned it. [`Reader::load`] reads only what has
/// changed since.
///
/// Each write of a topic's row notes its batch in `counted_at`, or for a new topic the batch before. So what
/// was counted before the batch as of which the read began, and still is when the shard is loaded, is what
/// was read. A dormant topic's row may lose dead letters without such a note: none with dead letters alone is
/// here. A number is given to one topic only.
///
/// [`Reader::load`]: crate::Reader::load
#[derive(Debug, Default)]
pub struct ReadAhead {
    /// The server that was read, as it names itself. Rows of another one are not used.
    pub(crate) server: String,
    /// The last batch before the read. What was counted in it or later is read again.
    pub(crate) since: u64,
    /// Topics that were counted before, by number.
    pub(crate) topics: Vec<ReadTopic>,
}

impl ReadAhead {
    /// Of a store that reads everything again.
    pub fn hints(rows: Vec<TopicRow>) -> Self {
        let topic = |row| ReadTopic { row, tally: None, counted_at: 0, unfolded: false };
        Self { topics: rows.into_iter().map(topic).collect(), ..Self::default() }
    }

    /// The last batch before the read.
    pub fn as_of(&self) -> u64 {
        self.since
    }

    /// The topics. Some may be gone, and have other counts, when the shard is loaded.
    pub fn topics(&self) -> impl ExactSizeIterator<Item = &TopicRow> {
        self.topics.iter().map(|topic| &topic.row)
    }
}

/// A topic that was read.
#[derive(Debug)]
pub(crate) struct ReadTopic {
    /// The topic.
    pub(crate) row: TopicRow,
    /// Tally of its items, if it was read with the topic.
    pub(crate) tally: Option<TopicTally>,
    /// The batch as of which the row has counted.
    pub(crate) counted_at: u64,
    /// There are deltas of later batches.
    pub(crate) unfolded: bool,
}
