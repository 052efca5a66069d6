//! Ack. It is retried: after an attempt of unknown outcome, an item that is gone counts as acked.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Fate;

use super::member_results::{Member, retry_members};
use crate::{
    client::{Client, Grpc},
    error::Error,
};

impl Client {
    /// Acknowledges up to 1,000 deliveries: their items are done. One result per receipt.
    pub async fn ack(&self, receipts: Vec<String>) -> Result<Vec<Result<(), Error>>, Error> {
        retry_members(
            self,
            self.attempts(Duration::ZERO),
            receipts,
            |receipts, until| async move {
                let request = v1::AckRequest {
                    namespace: self.config.namespace.clone(),
                    acks: receipts.into_iter().map(|receipt| v1::Ack { receipt }).collect(),
                };
                let call = |mut grpc: Grpc, request| async move { grpc.ack(request).await };
                let answer = self.attempt(Duration::ZERO, until, request, call).await?;
                Ok(answer.results.into_iter().map(settled).collect())
            },
            |_, unknown, error| (unknown && error.fate() == Some(Fate::Gone)).then_some(()),
        )
        .await
    }
}

pub(super) fn settled(result: v1::SettleResult) -> Member<()> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::testing::{Fake, lease_lost, refusal};

    fn results(errors: Vec<Option<tonic_types::Status>>) -> v1::AckResponse {
        v1::AckResponse { results: errors.into_iter().map(|error| v1::SettleResult { error }).collect() }
    }

    #[tokio::test(start_paused = true)]
    async fn gone_after_an_unknown_outcome_is_acked() {
        let (fake, client) = Fake::start().await;
        fake.ack.fail(Code::Unavailable, Some("OUTCOME_UNKNOWN"), 1);
        fake.ack.answer(results(vec![Some(lease_lost("gone")), Some(lease_lost("waiting"))]));
        let answers = client.ack(vec!["a".into(), "b".into()]).await.unwrap();
        assert_eq!(answers[0], Ok(()));
        assert_eq!(answers[1].as_ref().unwrap_err().fate(), Some(Fate::Waiting));
    }

    #[tokio::test(start_paused = true)]
    async fn gone_after_a_definite_refusal_is_lost() {
        let (fake, client) = Fake::start().await;
        fake.ack.fail(Code::ResourceExhausted, Some("OVERLOADED"), 1);
        fake.ack.answer(results(vec![Some(lease_lost("gone"))]));
        let answers = client.ack(vec!["a".into()]).await.unwrap();
        assert_eq!(answers[0].as_ref().unwrap_err().fate(), Some(Fate::Gone));
    }

    #[tokio::test(start_paused = true)]
    async fn only_failed_members_are_retried() {
        let (fake, client) = Fake::start().await;
        let busy = refusal(Code::Unavailable, "SHARD_UNAVAILABLE", Some(10));
        fake.ack.answer(results(vec![None, Some(busy)]));
        let answers = client.ack(vec!["a".into(), "b".into()]).await.unwrap();
        assert!(answers.iter().all(Result::is_ok));
        let calls = fake.ack.calls();
        assert_eq!(calls.len(), 2);
        assert_eq!(calls[1].acks, [v1::Ack { receipt: "b".into() }]);
    }
}
