//! How topics stand: asks other nodes, and answers them.

use forebay_engine::{BehindCall, Engine, TopicStanding};
use forebay_proto::peer;
use forebay_types::TopicName;
use tonic::Status;

use super::{channels::Client, links::PeerLinks, wire::explain};
use crate::{
    ask::{limited, refused},
    looks::topics::topic_name,
};

impl PeerLinks {
    /// How a topic stands at another node. `None`: no answer came.
    pub async fn standing(&self, address: &str, name: &TopicName) -> Option<TopicStanding> {
        let request = peer::GetStandingRequest { name: Some(topic_name(name)) };
        let ask = async |mut client: Client| client.get_standing(limited(request)).await;
        Some(explain::topic_standing(self.look(address, &name.namespace, ask).await?))
    }

    /// Counts what another node delivers before an item. `None`: no answer came, or it could not count.
    pub async fn count_before(&self, address: &str, call: &BehindCall) -> Option<u64> {
        let request = explain::behind_request(call);
        let ask = async |mut client: Client| client.count_before(limited(request)).await;
        self.look(address, &call.name.namespace, ask).await?.count
    }
}

/// How a topic stands, for another node.
pub async fn get_standing(
    engine: &Engine,
    request: peer::GetStandingRequest,
) -> Result<peer::GetStandingResponse, Status> {
    let name = request.name.ok_or_else(|| Status::invalid_argument("the topic has no name"))?;
    let standing = engine.standing(TopicName::new(name.namespace, name.topic)).await.map_err(refused)?;
    Ok(explain::topic_standing_message(standing))
}

/// Counts for another node.
pub async fn count_before(
    engine: &Engine,
    request: peer::CountBeforeRequest,
) -> Result<peer::CountBeforeResponse, Status> {
    let call = explain::behind_call(request)
        .ok_or_else(|| Status::invalid_argument("the topic or the item is missing"))?;
    let count = engine.count_before(&call).await.map_err(refused)?;
    Ok(peer::CountBeforeResponse { count })
}
