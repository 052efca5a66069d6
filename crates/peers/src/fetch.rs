//! Leases items at other nodes, and returns them.

use std::time::Duration;

use forebay_engine::{FetchCall, FetchError, FetchedItems, NackAction, NackOf};
use forebay_front::Links as _;
use forebay_types::{Namespace, Receipt};
use tonic::{Code, Request};

use crate::{links::PeerLinks, wire};

/// How long a node may take. Long before, nobody waits for it; what it answers later is returned.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

impl PeerLinks {
    pub(crate) async fn fetch(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        let link = self.fetch_link(address).ok_or(FetchError::Failed)?;
        let (number, mut client) = link.client().await.map_err(|_| FetchError::Failed)?;
        let name = call.name.clone();
        let mut request = Request::new(wire::fetch_request(call));
        request.set_timeout(FETCH_TIMEOUT);
        match tokio::time::timeout(FETCH_TIMEOUT, client.lease_items(request)).await {
            Ok(Ok(response)) => wire::fetched(&name, response.into_inner()).map_err(FetchError::Refused),
            Ok(Err(status)) => {
                if status.code() != Code::InvalidArgument {
                    link.broke(number).await;
                }
                Err(FetchError::Failed)
            }
            Err(_) => Err(FetchError::Failed),
        }
    }

    pub(crate) async fn release(&self, address: &str, namespace: Namespace, receipts: Vec<Receipt>) {
        let action = NackAction::Release(Duration::ZERO);
        let nack = |receipt| NackOf { receipt, action, metadata: None, reason: String::new() };
        // Without an answer the leases end by themselves.
        let _ = self.nack(address, namespace, receipts.into_iter().map(nack).collect()).await;
    }

    pub(crate) async fn consume(
        &self,
        address: &str,
        namespace: Namespace,
        receipts: Vec<Receipt>,
    ) -> Vec<bool> {
        let count = receipts.len();
        match self.ack(address, namespace, receipts).await {
            Ok(answers) => answers.iter().map(Result::is_ok).collect(),
            Err(_) => vec![false; count],
        }
    }
}
