//! Asks other nodes for what operators look at.

use std::time::Duration;

use forebay_engine::Engine;
use forebay_proto::peer;
use forebay_types::{Namespace, Refusal};
use tonic::{Code, Request, Response, Status};

use super::{channels::Client, links::PeerLinks, room::Load};
use crate::{
    history::History,
    looks::{self, Look, Part},
};

/// How long another node may take. It gives each of its shards 5 s.
pub(super) const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

impl PeerLinks {
    /// Has another node look at its shards. `None`: no answer came.
    pub async fn ask<L: Look>(&self, address: &str, look: &L) -> Option<Part<L::Answer>> {
        let request = looks::request(look);
        let ask = async |mut client: Client| client.ask(limited(request)).await;
        Part::of(self.look(address, &look.caller(), ask).await?)
    }

    /// Has another node's shards count a namespace anew. Returns those that do. `None`: no answer came.
    pub async fn forget_counts(&self, address: &str, namespace: &Namespace) -> Option<Vec<u32>> {
        let request = peer::ForgetCountsRequest { namespace: namespace.to_string() };
        let ask = async |mut client: Client| client.forget_counts(limited(request)).await;
        self.look(address, namespace, ask).await.map(|answer| answer.shards)
    }

    /// How many items of topics were ready, as another node knows it. `None`: no answer came.
    pub async fn list_recent(
        &self,
        address: &str,
        caller: &Namespace,
        request: &peer::ListRecentRequest,
    ) -> Option<peer::ListRecentResponse> {
        let ask = async |mut client: Client| client.list_recent(limited(request.clone())).await;
        self.look(address, caller, ask).await
    }

    /// Asks a node over the connection for calls that are passed on: no question of the cluster waits behind
    /// a long list.
    pub(super) async fn look<T>(
        &self,
        address: &str,
        caller: &Namespace,
        ask: impl AsyncFnOnce(Client) -> Result<Response<T>, Status>,
    ) -> Option<T> {
        let link = self.bulk(address)?;
        let _place = link.room.take(caller, Load::Settle, 0).ok()?;
        let asked = async {
            let (number, client) = link.client().await.ok()?;
            match ask(client).await {
                Ok(answer) => Some(answer.into_inner()),
                Err(error) => {
                    tracing::debug!(node = address, %error, "a look at another node failed");
                    // Another code is an answer: that of a node without this call, or one that refuses.
                    if matches!(error.code(), Code::Unavailable | Code::Unknown | Code::Internal) {
                        link.broke(number).await;
                    }
                    None
                }
            }
        };
        tokio::time::timeout(LOOK_TIMEOUT, asked).await.ok().flatten()
    }
}

pub(super) fn limited<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(LOOK_TIMEOUT);
    request
}

/// Looks at this node's shards for another node.
pub async fn ask(
    engine: &Engine,
    history: &History,
    request: peer::AskRequest,
) -> Result<peer::AskResponse, Status> {
    let unknown = || Status::unimplemented("this node does not know the look");
    looks::answer(engine, history, request).await.map_err(refused)?.ok_or_else(unknown)
}

/// Has this node's shards count a namespace anew, for another node.
pub async fn forget_counts(
    engine: &Engine,
    request: peer::ForgetCountsRequest,
) -> Result<peer::ForgetCountsResponse, Status> {
    let shards = engine.forget_counts(request.namespace.into()).await.map_err(refused)?;
    Ok(peer::ForgetCountsResponse { shards: shards.into_iter().map(|id| id.0).collect() })
}

pub(super) fn refused(refusal: Refusal) -> Status {
    Status::failed_precondition(refusal.to_string())
}
