//! ListNodes and ListShards: the nodes of a cluster, and the shards that they own.

use std::time::Duration;

use forebay_proto::v1::{self, admin_service_client::AdminServiceClient};
use forebay_types::Timestamp;
use tonic::{Code, Response, Status};

use crate::{client::Client, durations, endpoints::Learner, error::Error, token::Link};

/// Rows of a page.
const PAGE_ROWS: u32 = 1_000;

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Where clients reach it, `host:port`.
    pub clients_address: String,
    /// Where other nodes reach it, `host:port`.
    pub peer_address: String,
    /// Where its pages are, `host:port`.
    pub http_address: String,
    /// Its program's version.
    pub release: String,
    /// `live`, `joining`, `draining` or `silent`.
    pub state: &'static str,
    /// How many shards it owns.
    pub shards: u32,
    /// An operator drains it. A node that stops by itself drains without this.
    pub draining: bool,
    /// When its process started.
    pub started_at: Option<Timestamp>,
    /// It is the node that answered.
    pub is_self: bool,
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
    /// Counts its owners.
    pub epoch: u64,
    /// When its owner took it over, if it has one and that is known.
    pub since: Option<Timestamp>,
    /// How many items it stores, if the node that answered knows.
    pub items: Option<u64>,
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

    /// Asks one server, once: to ask again would do something else.
    pub(crate) async fn ask_once<A, F>(
        &self,
        call: impl FnOnce(AdminServiceClient<Link>) -> F,
    ) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let endpoint = self.attempts_by(self.listing.clone(), Duration::ZERO).target()?.endpoint;
        match tokio::time::timeout(self.config.attempt_timeout, call(endpoint.admin())).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::of_call(&status).at(endpoint.address())),
            Err(_) => Err(Error::timed_out(endpoint.address(), self.config.attempt_timeout)),
        }
    }

    /// Asks one server after the other until one answers.
    pub(crate) async fn ask<A, F>(&self, call: impl Fn(AdminServiceClient<Link>) -> F) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let mut attempts = self.attempts_by(self.listing.clone(), Duration::ZERO);
        loop {
            let endpoint = attempts.target()?.endpoint;
            let asked = tokio::time::timeout(self.config.attempt_timeout, call(endpoint.admin())).await;
            let error = match asked {
                Ok(Ok(answer)) => {
                    self.learner.iter().for_each(Learner::on_success);
                    return Ok(answer.into_inner());
                }
                Ok(Err(status)) => Error::of_call(&status).at(endpoint.address()),
                Err(_) => Error::timed_out(endpoint.address(), self.config.attempt_timeout),
            };
            if error.code() == Code::Unimplemented || !attempts.wait_for_retry(&[&error]).await {
                return Err(attempts.final_error(error));
            }
        }
    }
}

pub(super) fn node(node: v1::Node) -> Node {
    let state = match node.state() {
        v1::NodeState::Live => "live",
        v1::NodeState::Joining => "joining",
        v1::NodeState::Draining => "draining",
        v1::NodeState::Silent => "silent",
        v1::NodeState::Unspecified => "unknown",
    };
    Node {
        name: node.name,
        clients_address: node.clients_address,
        peer_address: node.peer_address,
        http_address: node.http_address,
        release: node.release,
        state,
        shards: node.shards,
        draining: node.draining,
        started_at: node.started_at.map(durations::time_from_proto),
        is_self: node.self_,
    }
}

pub(super) fn shard(shard: v1::Shard) -> Shard {
    let state = match shard.state() {
        v1::ShardState::Active => "active",
        v1::ShardState::Draining => "draining",
        v1::ShardState::Offline => "offline",
        v1::ShardState::Unspecified => "unknown",
    };
    Shard {
        id: shard.id,
        server: shard.server,
        state,
        owner: shard.owner,
        wished_owner: shard.wished_owner,
        pinned: shard.pinned,
        epoch: shard.epoch,
        since: shard.since.map(durations::time_from_proto),
        items: shard.items,
        trouble: shard.trouble,
        hold_up: shard.hold_up,
    }
}
