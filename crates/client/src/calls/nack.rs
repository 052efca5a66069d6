//! Nack. It is retried: after an attempt of unknown outcome, an item in the requested state counts as nacked.

use std::time::Duration;

use bytes::Bytes;
use forebay_proto::{time, v1};
use forebay_types::{Fate, cut_text};

use super::{
    ack::{forget_settled, learn_sick},
    by_origin::by_origin,
    member_results::{Member, retry_members},
};
use crate::{
    client::{Client, Grpc},
    error::Error,
    retry::Attempts,
    traces::{self, HandlerContext},
};

/// Bytes of a reason: as many as a server may be told to take. A longer text would only make the call too
/// large.
const REASON_BYTES_MAX: usize = u16::MAX as usize;

/// Outcome of a delivery that was nacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NackOutcome {
    /// The delay would have ended after the item's expiry: it was cut to half of the time that was left. Not
    /// known after an attempt whose answer was lost.
    pub delay_cut: bool,
}

/// A delivery that failed or is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// Identifies the delivery.
    pub receipt: String,
    /// Action on the item.
    pub action: NackAction,
    /// Replaces the item's metadata.
    pub metadata: Option<Bytes>,
    /// Why, for people. Stored with a dead letter. The server cuts what is longer than 1 KiB.
    pub reason: String,
}

/// Action on a nacked item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackAction {
    /// It failed. It is ready again after the delay. `None`: after the retry delay that is set for its topic
    /// or its namespace, at once where none is set.
    Fail(Option<Duration>),
    /// It did not fail. It is ready again after the delay.
    Release(Duration),
    /// It becomes a dead letter at once.
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

    fn into_proto(mut self) -> v1::Nack {
        cut_text(&mut self.reason, REASON_BYTES_MAX);
        let delay = match self.action {
            NackAction::Fail(delay) => delay,
            NackAction::Release(delay) => Some(delay).filter(|delay| !delay.is_zero()),
            NackAction::DeadLetter => None,
        };
        v1::Nack {
            receipt: self.receipt,
            delay: delay.map(time::to_duration),
            metadata: self.metadata,
            dead_letter: self.action == NackAction::DeadLetter,
            reason: self.reason,
            release: matches!(self.action, NackAction::Release(_)),
        }
    }

    /// Whether this nack would have left the item in the state `fate`.
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
    /// Nacks up to 1,000 deliveries. One result per member. Each goes first to the server that handed it out.
    pub async fn nack(&self, nacks: Vec<Nack>) -> Result<Vec<Result<NackOutcome, Error>>, Error> {
        self.nack_processed(nacks, &[]).await
    }

    /// The same after handlers, of which spans may be there.
    pub(crate) async fn nack_processed(
        &self,
        nacks: Vec<Nack>,
        processed: &[HandlerContext],
    ) -> Result<Vec<Result<NackOutcome, Error>>, Error> {
        let span = traces::settle("nack", nacks.len(), processed, || self.only_server());
        let ids: Vec<_> = nacks.iter().map(|nack| nack.receipt.clone()).collect();
        let results = by_origin(
            self,
            nacks,
            |nack| nack.receipt.as_str(),
            |attempts, nacks| self.nack_by(attempts, nacks),
        );
        let results = span.around_members(results, |_| None).await?;
        forget_settled(self, ids.iter().map(String::as_str), &results);
        Ok(results)
    }

    async fn nack_by(&self, attempts: Attempts, nacks: Vec<Nack>) -> Result<Vec<Member<NackOutcome>>, Error> {
        retry_members(
            attempts,
            nacks,
            |nacks, target| async move {
                let request = v1::NackRequest {
                    namespace: self.config.namespace.clone(),
                    nacks: nacks.into_iter().map(Nack::into_proto).collect(),
                };
                let receipts: Vec<_> = request.nacks.iter().map(|nack| nack.receipt.clone()).collect();
                let call = |mut grpc: Grpc, request| async move { grpc.nack(request).await };
                let answer = self.attempt(&target, Duration::ZERO, request, call).await?;
                let results = answer.results.into_iter().map(nacked).collect();
                Ok(learn_sick(self, receipts, results))
            },
            |nack, unknown, error| {
                (unknown && error.fate().is_some_and(|fate| nack.is_done(fate))).then(NackOutcome::default)
            },
        )
        .await
    }
}

fn nacked(result: v1::SettleResult) -> Member<NackOutcome> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(NackOutcome { delay_cut: result.delay_cut }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_its_encoding() {
        let delay = Duration::from_secs(2);
        for delay in [None, Some(Duration::ZERO), Some(delay)] {
            let failed = Nack::new("r", NackAction::Fail(delay)).into_proto();
            assert_eq!((failed.delay, failed.release), (delay.map(time::to_duration), false));
        }
        let released = Nack::new("r", NackAction::Release(Duration::ZERO)).into_proto();
        assert_eq!((released.delay, released.release, released.dead_letter), (None, true, false));
        let dead = Nack::new("r", NackAction::DeadLetter).reason("bad").into_proto();
        assert!(dead.dead_letter && dead.reason == "bad");
        let long = Nack::new("r", NackAction::DeadLetter).reason("é".repeat(1 << 20)).into_proto();
        assert!(long.reason.len() <= REASON_BYTES_MAX && long.reason.ends_with("é…"));
    }

    #[test]
    fn a_dead_letter_is_not_the_result_of_a_release() {
        assert!(!Nack::new("r", NackAction::Release(Duration::ZERO)).is_done(Fate::Dead));
        assert!(Nack::new("r", NackAction::Fail(None)).is_done(Fate::Dead));
        assert!(!Nack::new("r", NackAction::DeadLetter).is_done(Fate::Waiting));
    }
}
