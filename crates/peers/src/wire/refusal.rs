//! Refusals between nodes.

use std::time::Duration;

use forebay_proto::peer;
use forebay_types::{Elsewhere, Fate, Reason, Refusal, ShardId};

use super::micros;

/// The message of a refusal.
pub fn message(refusal: Refusal) -> peer::Refusal {
    // Rights and rates of calls are decided before a call is passed on.
    let Refusal { reason, message, field, retry_after, fate, elsewhere, subject: _ } = refusal;
    peer::Refusal {
        reason: reason.as_str().to_owned(),
        message,
        field,
        retry_after: retry_after.map(micros),
        fate: fate.map(|fate| fate.as_str().to_owned()),
        elsewhere: elsewhere.map(|Elsewhere { shard, owner }| peer::Elsewhere { shard: shard.0, owner }),
    }
}

/// The refusal of a message. Of a reason of a later release nobody here knows whether it excludes that
/// something has happened.
pub fn refusal(message: peer::Refusal) -> Refusal {
    let peer::Refusal { reason, message, field, retry_after, fate, elsewhere } = message;
    Refusal {
        reason: Reason::from_name(&reason).unwrap_or(Reason::OutcomeUnknown),
        message,
        field,
        retry_after: retry_after.map(Duration::from_micros),
        fate: fate.as_deref().and_then(Fate::from_name),
        elsewhere: elsewhere
            .map(|peer::Elsewhere { shard, owner }| Elsewhere { shard: ShardId(shard), owner }),
        subject: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_arrives_as_it_was() {
        let full = Refusal {
            reason: Reason::LeaseLost,
            message: "no".to_owned(),
            field: Some("items[3].topic".to_owned()),
            retry_after: Some(Duration::from_millis(250)),
            fate: Some(Fate::Waiting),
            elsewhere: Some(Elsewhere { shard: ShardId(7), owner: "b:7422".to_owned() }),
            subject: None,
        };
        assert_eq!(refusal(message(full.clone())), full);
        for reason in Reason::ALL {
            let bare = Refusal::new(reason, "no");
            assert_eq!(refusal(message(bare.clone())), bare);
        }
    }

    #[test]
    fn a_reason_of_a_later_release_leaves_the_outcome_unknown() {
        let later = peer::Refusal { reason: "LATER".to_owned(), ..Default::default() };
        assert_eq!(refusal(later).reason, Reason::OutcomeUnknown);
    }
}
