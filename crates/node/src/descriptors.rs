//! The process's file descriptors: how many there are, and how they are shared out.

use std::sync::Arc;

use forebay_config::{ShardConfig, ShardUrl};
use forebay_edge::connections::Places;
use forebay_web::metrics;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;

/// Kept back for the process itself: standard streams, the runtime, listeners, files that are open for a
/// moment, connections to other nodes, probes of a port that is full, connections that have just made room.
const PROCESS: usize = 80;
/// The same for a shard on a server: a connection that writes, four that read, one for statements that cannot
/// share one, and a part of those that all shards of a server share.
const MYSQL_SHARD: usize = 8;
/// The same for a shard in a file: six connections with three files each, the lock, and one to look.
const SQLITE_SHARD: usize = 22;
/// The most gRPC connections that a node has by default. Each takes memory too.
const GRPC_DEFAULT_MAX: usize = 8_192;
/// The same over HTTP, where a connection has one call at a time.
const HTTP_DEFAULT_MAX: usize = 1_024;
/// The same of other nodes, each of which has two.
const PEER_DEFAULT_MAX: usize = 256;
/// Connections that a port has in any case, however few descriptors there are.
const PORT_MIN: usize = 8;

/// How many connections each port may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionCaps {
    /// Of gRPC clients.
    pub grpc: usize,
    /// Of HTTP clients.
    pub http: usize,
    /// Of other nodes.
    pub peer: usize,
}

/// How many connections the configuration sets for each port.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PortConnections {
    /// Of gRPC clients.
    pub grpc: Option<usize>,
    /// Of HTTP clients.
    pub http: Option<usize>,
    /// Of other nodes.
    pub peer: Option<usize>,
    /// Other nodes can join the cluster, and connect.
    pub has_peers: bool,
}

/// Raises the soft limit to the hard one. Returns the limit that holds then.
pub(crate) fn raise_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit on file descriptors");
            limit.current
        }
    };
    // No limit counts as the largest number.
    current.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Shares `limit` descriptors out: first the shards, then HTTP and other nodes an eighth of the rest each,
/// gRPC what is left. `asked` has what the configuration sets, which is cut to what there is.
pub fn share(limit: usize, shards: &[ShardConfig], asked: PortConnections) -> ConnectionCaps {
    let of_shard = |shard: &ShardConfig| match shard.url {
        ShardUrl::MySql(_) => MYSQL_SHARD,
        ShardUrl::Sqlite(_) => SQLITE_SHARD,
    };
    let kept_back = PROCESS + shards.iter().map(of_shard).sum::<usize>();
    let left = limit.saturating_sub(kept_back);
    let cap =
        |asked: Option<usize>, left: usize, default: usize| asked.unwrap_or(default).min(left).max(PORT_MIN);
    let http = cap(asked.http, left / 8, HTTP_DEFAULT_MAX);
    let peer = if asked.has_peers { cap(asked.peer, left / 8, PEER_DEFAULT_MAX) } else { 0 };
    let grpc = cap(asked.grpc, left.saturating_sub(http + peer), GRPC_DEFAULT_MAX);
    tracing::info!(limit, kept_back, grpc, http, peer, "file descriptors shared out");
    let of_nodes = if asked.has_peers { asked.peer.unwrap_or(PORT_MIN) } else { 0 };
    let of_clients = asked.grpc.unwrap_or(PORT_MIN) + asked.http.unwrap_or(PORT_MIN);
    let wanted = kept_back + of_clients + of_nodes;
    if wanted > limit {
        tracing::warn!(
            limit,
            wanted,
            "too few file descriptors for the shards and the connections; raise the limit (ulimit -n)"
        );
    }
    ConnectionCaps { grpc, http, peer }
}

/// Shares them out anew whenever the shards change, until nobody changes them any more. What is open stays
/// open. Metrics of new shards begin.
pub async fn follow(
    limit: usize,
    mut shards: watch::Receiver<Vec<ShardConfig>>,
    asked: PortConnections,
    [grpc, http, peer]: [Arc<Places>; 3],
) {
    while shards.changed().await.is_ok() {
        let shards = shards.borrow_and_update().clone();
        metrics::add_shards(&shards.iter().map(|shard| shard.id).collect::<Vec<_>>());
        let caps = share(limit, &shards, asked);
        grpc.set_max(caps.grpc);
        http.set_max(caps.http);
        peer.set_max(caps.peer);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use forebay_types::ShardId;

    use super::*;
    use forebay_edge::connections::{PlaceRules, Stage};

    fn shards(number: u32) -> Vec<ShardConfig> {
        let url = |id: u32| ShardUrl::Sqlite(PathBuf::from(format!("{id}")));
        (1..=number).map(|id| ShardConfig { id: ShardId(id), url: url(id) }).collect()
    }

    const ALONE: PortConnections = PortConnections { grpc: None, http: None, peer: None, has_peers: false };
    const IN_CLUSTER: PortConnections = PortConnections { has_peers: true, ..ALONE };

    #[test]
    fn the_shards_come_first() {
        let caps = share(256, &shards(2), ALONE);
        let left = 256 - PROCESS - 2 * SQLITE_SHARD;
        assert_eq!(caps, ConnectionCaps { grpc: left - left / 8, http: left / 8, peer: 0 });
        let caps = share(256, &shards(2), IN_CLUSTER);
        let eighth = left / 8;
        assert_eq!(caps, ConnectionCaps { grpc: left - 2 * eighth, http: eighth, peer: eighth });
        let least = ConnectionCaps { grpc: PORT_MIN, http: PORT_MIN, peer: PORT_MIN };
        assert_eq!(share(64, &shards(9), IN_CLUSTER), least);
    }

    #[test]
    fn many_descriptors_are_not_used_up_by_default() {
        let most = ConnectionCaps { grpc: GRPC_DEFAULT_MAX, http: HTTP_DEFAULT_MAX, peer: PEER_DEFAULT_MAX };
        assert_eq!(share(usize::MAX, &shards(2), IN_CLUSTER), most);
        let asked = PortConnections { grpc: Some(20_000), http: Some(9), peer: Some(300), has_peers: true };
        let caps = ConnectionCaps { grpc: 20_000, http: 9, peer: 300 };
        assert_eq!(share(1 << 20, &shards(2), asked), caps);
    }

    #[tokio::test]
    async fn shards_that_are_added_take_their_descriptors_from_the_ports() {
        let (sender, receiver) = watch::channel(Vec::new());
        let rules = PlaceRules { per_address: Some(usize::MAX), balancers: Vec::new() };
        let [grpc, http, peer] = ["grpc", "http", "peer"].map(|port| Places::new(port, 0, &rules));
        sender.send_replace(shards(2));
        drop(sender);
        follow(256, receiver, IN_CLUSTER, [grpc.clone(), http, peer.clone()]).await;
        let left = 256 - PROCESS - 2 * SQLITE_SHARD;
        let accept = |places: &Arc<Places>| {
            let (place, _) = places.enter([127, 0, 0, 1].into())?;
            place.reach(Stage::Accepted);
            Some(place)
        };
        let opened = |places: Arc<Places>| {
            std::iter::from_fn(|| accept(&places)).take(1_000).collect::<Vec<_>>().len()
        };
        assert_eq!((opened(grpc), opened(peer)), (left - 2 * (left / 8), left / 8));
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let limit = raise_limit();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
        assert!(limit > 0);
    }
}
