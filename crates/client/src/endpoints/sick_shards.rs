//! Shards that do not answer for now. What settles their deliveries goes in calls of its own, so that others
//! do not wait for it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use forebay_types::{Reason, Receipt, ShardId};
use tokio::time::Instant;

use crate::error::Error;

/// A shard counts as one that does not answer for so long after it was said to be.
const SICK_FOR: Duration = Duration::from_secs(10);
/// At most this many shards are remembered.
const REMEMBERED: usize = 1_024;

/// Shards that do not answer, and when that was said last.
#[derive(Debug, Default)]
pub(crate) struct SickShards(Mutex<HashMap<ShardId, Instant>>);

impl SickShards {
    /// The shard of a delivery, if it does not answer.
    pub(crate) fn of(&self, namespace: &str, receipt: &str) -> Option<ShardId> {
        let sick = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sick.is_empty() {
            return None;
        }
        let shard = Receipt::decode(namespace, receipt).ok()?.item.shard;
        sick.get(&shard).is_some_and(|since| since.elapsed() < SICK_FOR).then_some(shard)
    }

    /// Learns from the answer for a delivery.
    pub(crate) fn learn(&self, namespace: &str, receipt: &str, error: Option<&Error>) {
        let says_sick =
            |error: &Error| matches!(error.reason(), Some(Reason::ShardUnavailable | Reason::OutcomeUnknown));
        let is_sick = error.is_some_and(says_sick);
        let mut sick = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sick.is_empty() && !is_sick {
            return;
        }
        let Ok(Receipt { item, .. }) = Receipt::decode(namespace, receipt) else { return };
        if !is_sick {
            sick.remove(&item.shard);
        } else if sick.len() < REMEMBERED || sick.contains_key(&item.shard) {
            sick.insert(item.shard, Instant::now());
        } else {
            sick.retain(|_, since| since.elapsed() < SICK_FOR);
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{ItemId, Seq};
    use tonic::Code;

    use super::*;
    use crate::testing::refusal;

    #[tokio::test(start_paused = true)]
    async fn a_shard_is_sick_until_it_answers_or_for_a_while() {
        let item = ItemId { shard: ShardId(3), seq: Seq(1) };
        let receipt = Receipt { item, delivery: 1, nonce: 1 }.encode("ns");
        let sick = SickShards::default();
        let unavailable = Error::of_member(&refusal(Code::Unavailable, "SHARD_UNAVAILABLE", None));
        let busy = Error::of_member(&refusal(Code::ResourceExhausted, "OVERLOADED", None));
        assert_eq!(sick.of("ns", &receipt), None);
        sick.learn("ns", &receipt, Some(&unavailable));
        assert_eq!(sick.of("ns", &receipt), Some(ShardId(3)));
        assert_eq!((sick.of("other", &receipt), sick.of("ns", "?")), (None, None));
        sick.learn("ns", &receipt, Some(&busy));
        assert_eq!(sick.of("ns", &receipt), None, "it answers");
        sick.learn("ns", &receipt, Some(&unavailable));
        tokio::time::advance(SICK_FOR).await;
        assert_eq!(sick.of("ns", &receipt), None);
    }
}
