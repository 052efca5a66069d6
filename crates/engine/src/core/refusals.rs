//! Refusals that several calls give.

use forebay_types::{Pause, Reason, Refusal, Topic};

use crate::api::RETRY_AFTER;

/// The node takes no more work.
pub(crate) fn draining() -> Refusal {
    Refusal::new(Reason::NodeDraining, "the node is stopping: use another node").retry_after(RETRY_AFTER)
}

/// No shard can take an item.
pub(crate) fn no_shard() -> Refusal {
    Refusal::new(Reason::ShardUnavailable, "no shard of this node takes new items at the moment")
        .retry_after(RETRY_AFTER)
}

/// Bytes of a pause's note that a refusal repeats.
const NOTE_BYTES: usize = 200;

/// The topic takes no new items.
pub(crate) fn paused(topic: &Topic, pause: &Pause) -> Refusal {
    let mut message = format!("topic {topic} is paused for new items");
    if let Some(until) = pause.until {
        message += &format!(" until {until}");
    }
    if !pause.note.is_empty() {
        message.push_str(": ");
        message.push_str(&pause.note[..pause.note.floor_char_boundary(NOTE_BYTES)]);
    }
    Refusal::new(Reason::TopicPaused, message)
}
