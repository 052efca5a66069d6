//! Leases items at other nodes.

use std::time::Duration;

use forebay_engine::{FetchCall, FetchError, FetchedItems};
use tonic::Request;

use crate::{channels::Client, links::PeerLinks, wire};

/// How long a node may take. Long before, nobody waits for it; what it answers later is returned.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

impl PeerLinks {
    /// Leases items in the shards of the node at this address.
    pub(crate) async fn fetch(&self, address: &str, call: FetchCall) -> Result<FetchedItems, FetchError> {
        let name = call.name.clone();
        let mut request = Request::new(wire::fetch_request(call));
        request.set_timeout(FETCH_TIMEOUT);
        let lease = async |mut client: Client| client.lease_items(request).await;
        let response = self.exchange(address, FETCH_TIMEOUT, lease).await.map_err(|_| FetchError::Failed)?;
        wire::fetched(&name, response).map_err(FetchError::Refused)
    }
}
