//! ListNodes and ListShards: the nodes of a cluster, and the shards that they own.

use std::time::Duration;

use forebay_proto::v1::{self, admin_service_client::AdminServiceClient};
use tonic::{Code, Response, Status, transport::Channel};

use crate::{client::Client, error::Error};

/// Rows of a page.
const PAGE_ROWS: u32 = 1_000;

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Where clients reach it, `host:port`.
    pub clients_address: String,
    /// Where its pages are, `host:port`.
    pub http_address: String,
    /// Its program's version.
    pub release: String,
    /// `live`, `joining`, `draining` or `silent`.
    pub state: &'static str,
    /// How many shards it owns.
    pub shards: u32,
}

/// A shard of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// Its number.
    pub id: u32,
    /// Where it is stored, `host:port` or a folder.
    pub server: String,
    /// `active`, `draining` or `offline`.
    pub state: &'static str,
    /// The node that owns it. Empty: none.
    pub owner: String,
    /// The node that is to own it. Empty: none, or the node has a static list of shards.
    pub wished_owner: String,
    /// An operator chose that node.
    pub pinned: bool,
    /// What is wrong with it. Empty: nothing, as far as the node that answered knows.
    pub trouble: String,
    /// What keeps a drained shard from being removed, for people. Empty: nothing, or it is not drained.
    pub hold_up: String,
}

impl Client {
    /// All nodes of the cluster, by name, as one of them sees it.
    pub async fn nodes(&self) -> Result<Vec<Node>, Error> {
        let (mut nodes, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = v1::ListNodesRequest { page_size: PAGE_ROWS, page_token };
            let page = self
                .ask(|mut admin| {
                    let request = request.clone();
                    async move { admin.list_nodes(request).await }
                })
                .await?;
            nodes.extend(page.nodes.into_iter().map(node));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(nodes);
            }
        }
    }

    /// All shards of the cluster, by number, as one node sees them.
    pub async fn shards(&self) -> Result<Vec<Shard>, Error> {
        let (mut shards, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = v1::ListShardsRequest { page_size: PAGE_ROWS, page_token };
            let page = self
                .ask(|mut admin| {
                    let request = request.clone();
                    async move { admin.list_shards(request).await }
                })
                .await?;
            shards.extend(page.shards.into_iter().map(shard));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(shards);
            }
        }
    }

    /// Asks one server after the other until one answers.
    async fn ask<A, F>(&self, call: impl Fn(AdminServiceClient<Channel>) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut attempts = self.attempts_by(self.listing.clone(), Duration::ZERO);
        loop {
            let endpoint = attempts.target()?.endpoint;
            let asked = tokio::time::timeout(self.config.attempt_timeout, call(endpoint.admin())).await;
            let error = match asked {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) => Error::of_call(&status).at(endpoint.address()),
                Err(_) => Error::timed_out(endpoint.address(), self.config.attempt_timeout),
            };
            if error.code() == Code::Unimplemented || !attempts.wait_for_retry(&[&error]).await {
                return Err(attempts.final_error(error));
            }
        }
    }
}

fn node(node: v1::Node) -> Node {
    let state = match node.state() {
        v1::NodeState::Live => "live",
        v1::NodeState::Joining => "joining",
        v1::NodeState::Draining => "draining",
        v1::NodeState::Silent => "silent",
        v1::NodeState::Unspecified => "unknown",
    };
    let v1::Node { name, clients_address, http_address, release, shards, .. } = node;
    Node { name, clients_address, http_address, release, state, shards }
}

fn shard(shard: v1::Shard) -> Shard {
    let state = match shard.state() {
        v1::ShardState::Active => "active",
        v1::ShardState::Draining => "draining",
        v1::ShardState::Offline => "offline",
        v1::ShardState::Unspecified => "unknown",
    };
    let v1::Shard { id, server, owner, wished_owner, pinned, trouble, hold_up, .. } = shard;
    Shard { id, server, state, owner, wished_owner, pinned, trouble, hold_up }
}
