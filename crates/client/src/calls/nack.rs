//! Nack: may be repeated; an item that is where it should be after an unknown outcome is done.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::v1;
use forebay_types::Fate;

use super::{ack::settled, tally::repeat_members};
use crate::{Client, Error, client::Grpc, spans};

/// One delivery to give back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// The delivery.
    pub receipt: String,
    /// What is to become of the item.
    pub action: NackAction,
    /// New metadata.
    pub metadata: Option<Bytes>,
    /// Why, for people; kept with a dead letter. At most 1 KiB.
    pub reason: String,
}

/// What is to become of an item that is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackAction {
    /// It failed; ready again after the delay.
    Fail(Duration),
    /// It did not fail; ready again after the delay.
    Release(Duration),
    /// To the dead letters at once.
    DeadLetter,
}

impl Nack {
    /// Without metadata and reason.
    pub fn new(receipt: impl Into<String>, action: NackAction) -> Self {
        Self { receipt: receipt.into(), action, metadata: None, reason: String::new() }
    }

    /// The same with a reason.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    fn into_proto(self) -> v1::Nack {
        let delay = match self.action {
            NackAction::Fail(delay) | NackAction::Release(delay) if !delay.is_zero() => Some(delay),
            _ => None,
        };
        v1::Nack {
            receipt: self.receipt,
            delay: delay.map(spans::to_proto),
            metadata: self.metadata,
            dead_letter: self.action == NackAction::DeadLetter,
            reason: self.reason,
            release: matches!(self.action, NackAction::Release(_)),
        }
    }

    /// Whether an item that is now at `fate` is where this nack was to send it.
    fn is_done(&self, fate: Fate) -> bool {
        match self.action {
            NackAction::DeadLetter => fate == Fate::Dead,
            // The failure may have been the last one.
            NackAction::Fail(_) => matches!(fate, Fate::Waiting | Fate::Leased | Fate::Dead),
            NackAction::Release(_) => matches!(fate, Fate::Waiting | Fate::Leased),
        }
    }
}

impl Client {
    /// Gives up to 1,000 deliveries back. One result per member.
    pub async fn nack(&self, nacks: Vec<Nack>) -> Result<Vec<Result<(), Error>>, Error> {
        repeat_members(
            self,
            self.attempts(Duration::ZERO),
            nacks,
            |nacks, until| async move {
                let request = v1::NackRequest {
                    namespace: self.config.namespace.clone(),
                    nacks: nacks.into_iter().map(Nack::into_proto).collect(),
                };
                let call = |mut grpc: Grpc, request| async move { grpc.nack(request).await };
                let answer = self.attempt(Duration::ZERO, until, request, call).await?;
                Ok(answer.results.into_iter().map(settled).collect())
            },
            |nack, open, error| (open && error.fate().is_some_and(|fate| nack.is_done(fate))).then_some(()),
        )
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_back_on_the_wire() {
        let span = Duration::from_secs(2);
        let failed = Nack::new("r", NackAction::Fail(span)).into_proto();
        assert_eq!((failed.delay, failed.release), (Some(spans::to_proto(span)), false));
        let released = Nack::new("r", NackAction::Release(Duration::ZERO)).into_proto();
        assert_eq!((released.delay, released.release, released.dead_letter), (None, true, false));
        let dead = Nack::new("r", NackAction::DeadLetter).reason("bad").into_proto();
        assert!(dead.dead_letter && dead.reason == "bad");
    }

    #[test]
    fn a_release_that_ended_among_the_dead_was_not_this_one() {
        assert!(!Nack::new("r", NackAction::Release(Duration::ZERO)).is_done(Fate::Dead));
        assert!(Nack::new("r", NackAction::Fail(Duration::ZERO)).is_done(Fate::Dead));
        assert!(!Nack::new("r", NackAction::DeadLetter).is_done(Fate::Waiting));
    }
}
