//! ExtendLease: counts from now, so it may be repeated.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use super::tally::{Member, repeat_members};
use crate::{Client, Error, client::Grpc, spans};

impl Client {
    /// Moves the end of up to 1,000 leases to `lease` from now (`None`: each item's own duration). Answers
    /// when each one ends.
    pub async fn extend_lease(
        &self,
        receipts: Vec<String>,
        lease: Option<Duration>,
    ) -> Result<Vec<Result<Timestamp, Error>>, Error> {
        repeat_members(
            self,
            self.attempts(Duration::ZERO),
            receipts,
            |receipts, until| async move {
                let extension =
                    |receipt| v1::LeaseExtension { receipt, lease_duration: lease.map(spans::to_proto) };
                let request = v1::ExtendLeaseRequest {
                    namespace: self.config.namespace.clone(),
                    extensions: receipts.into_iter().map(extension).collect(),
                };
                let call = |mut grpc: Grpc, request| async move { grpc.extend_lease(request).await };
                let answer = self.attempt(Duration::ZERO, until, request, call).await?;
                Ok(answer.results.into_iter().map(extended).collect())
            },
            |_, _, _| None,
        )
        .await
    }
}

fn extended(result: v1::ExtendLeaseResult) -> Member<Timestamp> {
    match result.error {
        Some(error) => Err(Error::of_member(&error)),
        None => Ok(result.lease_expires_at.map_or(Timestamp::MAX, spans::time_from_proto)),
    }
}
