//! ExtendLease. It is retried: the new duration counts from now, so repeating it does no harm.

use std::time::Duration;

use forebay_proto::{time, v1};
use forebay_types::Timestamp;

use super::{
    ack::learn_sick,
    by_origin::by_origin,
    member_results::{Member, retry_members},
};
use crate::{
    client::{Client, Grpc},
    error::Error,
    retry::Attempts,
    traces,
};

impl Client {
    /// Lets up to 1,000 leases end in `lease` from now (`None`: each item's own duration). Returns each
    /// lease's new end. Each goes first to the server that handed out its delivery.
    pub async fn extend_lease(
        &self,
        receipts: Vec<String>,
        lease: Option<Duration>,
    ) -> Result<Vec<Result<Timestamp, Error>>, Error> {
        let span = traces::settle("extend", receipts.len(), &[], || self.only_server());
        let results = by_origin(
            self,
            receipts,
            |receipt| receipt.as_str(),
            |attempts, receipts| self.extend_by(attempts, receipts, lease),
        );
        span.around_members(results, |_| None).await
    }

    async fn extend_by(
        &self,
        attempts: Attempts,
        receipts: Vec<String>,
        lease: Option<Duration>,
    ) -> Result<Vec<Member<Timestamp>>, Error> {
        retry_members(
            attempts,
            receipts,
            |receipts, target| async move {
                let extension =
                    |receipt| v1::LeaseExtension { receipt, lease_duration: lease.map(time::to_duration) };
                let request = v1::ExtendLeaseRequest {
                    namespace: self.config.namespace.clone(),
                    extensions: receipts.into_iter().map(extension).collect(),
                };
                let receipts: Vec<_> = request.extensions.iter().map(|one| one.receipt.clone()).collect();
                let call = |mut grpc: Grpc, request| async move { grpc.extend_lease(request).await };
                let answer = self.attempt(&target, Duration::ZERO, request, call).await?;
                let results = answer.results.into_iter().map(extended).collect();
                Ok(learn_sick(self, receipts, results))
            },
            |_, _, _| None,
        )
        .await
    }
}

fn extended(result: v1::ExtendLeaseResult) -> Member<Timestamp> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(result.lease_expires_at.map_or(Timestamp::MAX, time::from_timestamp)),
    }
}
