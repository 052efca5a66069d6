//! Changes of items: asks other nodes for those in their shards, and answers them.

use forebay_engine::{ChangeCall, Changed, Engine};
use forebay_proto::peer;
use tonic::Status;

use super::{
    channels::Client,
    links::PeerLinks,
    looks::{limited, refused},
    wire::changes,
};

/// The most items that another node may ask for at once.
const ITEMS_MAX: usize = 1_000;

impl PeerLinks {
    /// Has another node change items. `None`: no answer came.
    pub async fn change_items(&self, address: &str, call: &ChangeCall) -> Option<Vec<Changed>> {
        let request = changes::request(call);
        let ask = async |mut client: Client| client.change_items(limited(request)).await;
        self.look(address, &call.namespace, ask).await.map(changes::results)
    }
}

/// Changes items for another node.
pub async fn change_items(
    engine: &Engine,
    request: peer::ChangeItemsRequest,
) -> Result<peer::ChangeItemsResponse, Status> {
    if request.items.len() > ITEMS_MAX {
        return Err(Status::invalid_argument(format!("more than {ITEMS_MAX} items")));
    }
    let call =
        changes::call(request).ok_or_else(|| Status::unimplemented("this node does not know the change"))?;
    Ok(changes::response(engine.change_items(call).await.map_err(refused)?))
}
