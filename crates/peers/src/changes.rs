//! Changes of items: asks other nodes for those in their shards, and answers them.

use forebay_engine::{ChangeCall, ChangeResult, Engine};
use forebay_front::LinkError;
use forebay_proto::peer;
use tonic::{Code, Response, Status};

use super::{channels::Client, forward::failure, links::PeerLinks, room::Load, wire::changes};
use crate::ask::{LOOK_TIMEOUT, limited};

/// The most items that another node may ask for at once.
const ITEMS_MAX: usize = 1_000;

/// Another node has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// It does not know the change, as one of an earlier release. It has done nothing.
    UnknownChange,
    /// It was not reached, or has refused before it looked at the change. It has done nothing.
    NotAsked,
    /// It may have made the change.
    Lost,
}

impl PeerLinks {
    /// Has another node change items.
    pub async fn change_items(
        &self,
        address: &str,
        call: &ChangeCall,
    ) -> Result<Vec<ChangeResult>, NoAnswer> {
        let link = self.bulk(address).ok_or(NoAnswer::NotAsked)?;
        let _place = link.room.take(&call.namespace, Load::Settle, 0).map_err(|_| NoAnswer::NotAsked)?;
        let request = changes::request(call);
        let asked = async {
            let (number, mut client): (_, Client) = link.client().await.map_err(|_| NoAnswer::NotAsked)?;
            let error = match client.change_items(limited(request)).await.map(Response::into_inner) {
                Ok(answer) => return Ok(changes::results(answer)),
                Err(error) => error,
            };
            tracing::debug!(node = address, %error, "a change at another node failed");
            // Another code is an answer.
            if matches!(error.code(), Code::Unavailable | Code::Unknown | Code::Internal) {
                link.broke(number).await;
            }
            Err(match (error.code(), failure(&error)) {
                (Code::Unimplemented, _) => NoAnswer::UnknownChange,
                (_, LinkError::Unreached(_)) => NoAnswer::NotAsked,
                (_, LinkError::Lost(_)) => NoAnswer::Lost,
            })
        };
        tokio::time::timeout(LOOK_TIMEOUT, asked).await.unwrap_or(Err(NoAnswer::Lost))
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
    let items = call.items.len();
    // Why it refused the whole call says whether anything can have happened.
    let answer = engine.change_items(call).await.unwrap_or_else(|refusal| vec![Err(refusal); items]);
    Ok(changes::response(answer))
}
