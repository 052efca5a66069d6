//! The process's file descriptors: how many there are, and how they are shared out.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::watch;

use crate::{
    config::{ShardConfig, ShardUrl},
    connections::ConnectionCap,
};

/// Kept back for the process itself: standard streams, the runtime, listeners, files that are open for a
/// moment, connections to other nodes.
const PROCESS: usize = 48;
/// The same for a shard on a server: a connection that writes, four that read, one for statements that cannot
/// share one, and a part of those that all shards of a server share.
const MYSQL_SHARD: usize = 8;
/// The same for a shard in a file: six connections with three files each, the lock, and one to look.
const SQLITE_SHARD: usize = 22;
/// The most gRPC connections that a node has by default. Each takes memory too.
const GRPC_DEFAULT_MAX: usize = 8_192;
/// The same over HTTP, where only operators connect.
const HTTP_DEFAULT_MAX: usize = 256;
/// Connections that a port has in any case, however few descriptors there are.
const PORT_MIN: usize = 8;

/// How many connections each port may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCaps {
    /// Of gRPC clients.
    pub grpc: usize,
    /// Of HTTP clients.
    pub http: usize,
}

/// Raises the soft limit to the hard one. Returns the limit that holds then.
pub fn raise_limit() -> usize {
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

/// Shares `limit` descriptors out: first the shards, then HTTP an eighth of the rest, gRPC what is left.
/// `asked` has what the configuration sets, which is cut to what there is.
pub fn share(limit: usize, shards: &[ShardConfig], asked: [Option<usize>; 2]) -> ConnectionCaps {
    let of_shard = |shard: &ShardConfig| match shard.url {
        ShardUrl::MySql(_) => MYSQL_SHARD,
        ShardUrl::Sqlite(_) => SQLITE_SHARD,
    };
    let kept_back = PROCESS + shards.iter().map(of_shard).sum::<usize>();
    let left = limit.saturating_sub(kept_back);
    let cap =
        |asked: Option<usize>, left: usize, default: usize| asked.unwrap_or(default).min(left).max(PORT_MIN);
    let http = cap(asked[1], left / 8, HTTP_DEFAULT_MAX);
    let grpc = cap(asked[0], left.saturating_sub(http), GRPC_DEFAULT_MAX);
    tracing::info!(limit, kept_back, grpc, http, "file descriptors shared out");
    let wanted = kept_back + asked[0].unwrap_or(PORT_MIN) + asked[1].unwrap_or(PORT_MIN);
    if wanted > limit {
        tracing::warn!(
            limit,
            wanted,
            "too few file descriptors for the shards and the connections; raise the limit (ulimit -n)"
        );
    }
    ConnectionCaps { grpc, http }
}

/// Shares them out anew whenever the shards change, until nobody changes them any more. What is open stays
/// open.
pub async fn follow(
    limit: usize,
    mut shards: watch::Receiver<Vec<ShardConfig>>,
    asked: [Option<usize>; 2],
    [grpc, http]: [Arc<ConnectionCap>; 2],
) {
    while shards.changed().await.is_ok() {
        let caps = share(limit, &shards.borrow_and_update(), asked);
        grpc.set_max(caps.grpc);
        http.set_max(caps.http);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use forebay_types::ShardId;

    use super::*;

    fn shards(number: u32) -> Vec<ShardConfig> {
        let url = |id: u32| ShardUrl::Sqlite(PathBuf::from(format!("{id}")));
        (1..=number).map(|id| ShardConfig { id: ShardId(id), url: url(id) }).collect()
    }

    #[test]
    fn the_shards_come_first() {
        let caps = share(256, &shards(2), [None, None]);
        let left = 256 - PROCESS - 2 * SQLITE_SHARD;
        assert_eq!(caps, ConnectionCaps { grpc: left - left / 8, http: left / 8 });
        assert_eq!(share(64, &shards(9), [None, None]), ConnectionCaps { grpc: PORT_MIN, http: PORT_MIN });
    }

    #[test]
    fn many_descriptors_are_not_used_up_by_default() {
        let most = ConnectionCaps { grpc: GRPC_DEFAULT_MAX, http: HTTP_DEFAULT_MAX };
        assert_eq!(share(usize::MAX, &shards(2), [None, None]), most);
        let asked = share(1 << 20, &shards(2), [Some(20_000), Some(9)]);
        assert_eq!(asked, ConnectionCaps { grpc: 20_000, http: 9 });
    }

    #[tokio::test]
    async fn shards_that_are_added_take_their_descriptors_from_the_ports() {
        let (sender, receiver) = watch::channel(Vec::new());
        let (grpc, http) = (ConnectionCap::new("grpc", 0), ConnectionCap::new("http", 0));
        sender.send_replace(shards(2));
        drop(sender);
        follow(256, receiver, [None, None], [grpc.clone(), http]).await;
        let left = 256 - PROCESS - 2 * SQLITE_SHARD;
        let open: Vec<_> = std::iter::from_fn(|| grpc.open()).take(1_000).collect();
        assert_eq!(open.len(), left - left / 8);
    }

    #[test]
    fn the_limit_is_raised_as_far_as_it_may_be() {
        let limit = raise_limit();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
        assert!(limit > 0);
    }
}
