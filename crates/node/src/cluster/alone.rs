//! State of a node with a static list of shards, as it shows its cluster.

use std::net::SocketAddr;

use forebay_membership::NodeState;
use forebay_types::{Clock as _, SystemClock};

use crate::listen::{host_name, reachable};

/// A node with a static list of shards: it is alone, as far as it knows.
pub fn alone(peer_address: &str, clients_address: &str, http: SocketAddr) -> NodeState {
    NodeState {
        name: host_name(),
        peer_address: peer_address.to_owned(),
        clients_address: clients_address.to_owned(),
        http_address: reachable(http),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        live: true,
        joining: false,
        reached: true,
        draining: false,
        shards: 0,
        started_micros: Some(SystemClock::default().wall().as_micros()),
    }
}
