//! Ack. It is retried: after an attempt of unknown outcome, an item that is gone counts as acked.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::{Fate, Reason};

use super::{
    by_origin::by_origin,
    member_results::{Member, retry_members},
};
use crate::{
    client::{Client, Grpc},
    error::Error,
    retry::Attempts,
    traces::{self, HandlerContext},
};

impl Client {
    /// Acknowledges up to 1,000 deliveries: their items are done. One result per receipt. Each goes first to
    /// the server that handed it out.
    pub async fn ack(&self, receipts: Vec<String>) -> Result<Vec<Result<(), Error>>, Error> {
        self.ack_processed(receipts, &[]).await
    }

    /// The same after handlers, of which spans may be there.
    pub(crate) async fn ack_processed(
        &self,
        receipts: Vec<String>,
        processed: &[HandlerContext],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let span = traces::settle("ack", receipts.len(), processed, || self.only_server());
        let ids = receipts.clone();
        let results = by_origin(
            self,
            receipts,
            |receipt| receipt.as_str(),
            |attempts, receipts| self.ack_by(attempts, receipts),
        );
        let results = span.around_members(results, |()| None).await?;
        forget_settled(self, ids.iter().map(String::as_str), &results);
        Ok(results)
    }

    async fn ack_by(&self, attempts: Attempts, receipts: Vec<String>) -> Result<Vec<Member<()>>, Error> {
        retry_members(
            attempts,
            receipts,
            |receipts, target| async move {
                let request = v1::AckRequest {
                    namespace: self.config.namespace.clone(),
                    acks: receipts.into_iter().map(|receipt| v1::Ack { receipt }).collect(),
                };
                let receipts: Vec<_> = request.acks.iter().map(|ack| ack.receipt.clone()).collect();
                let call = |mut grpc: Grpc, request| async move { grpc.ack(request).await };
                let answer = self.attempt(&target, Duration::ZERO, request, call).await?;
                let results = answer.results.into_iter().map(settled).collect();
                Ok(learn_sick(self, receipts, results))
            },
            |_, unknown, error| (unknown && error.fate() == Some(Fate::Gone)).then_some(()),
        )
        .await
    }
}

/// Deliveries that are over are not asked about again.
pub(super) fn forget_settled<'a, T>(
    client: &Client,
    receipts: impl Iterator<Item = &'a str>,
    results: &[Member<T>],
) {
    let is_over = |result: &Member<T>| match result {
        Ok(_) => true,
        Err(error) => error.reason() == Some(Reason::LeaseLost),
    };
    for (receipt, _) in receipts.zip(results).filter(|(_, result)| is_over(result)) {
        client.endpoints.origins.forget(receipt);
    }
}

/// Notes which shards do not answer, and which do.
pub(super) fn learn_sick<R>(
    client: &Client,
    receipts: Vec<String>,
    results: Vec<Member<R>>,
) -> Vec<Member<R>> {
    for (receipt, result) in receipts.iter().zip(&results) {
        client.endpoints.sick_shards.learn(client.namespace(), receipt, result.as_ref().err());
    }
    results
}

fn settled(result: v1::SettleResult) -> Member<()> {
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
        let result = |error| v1::SettleResult { error, ..Default::default() };
        v1::AckResponse { results: errors.into_iter().map(result).collect() }
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
