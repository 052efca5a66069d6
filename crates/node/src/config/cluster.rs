//! Checks what concerns a cluster with a catalog.

use forebay_types::{NodeName, ShardId};

use super::{
    addresses::{address, overlap},
    file::{Catalog, Node},
    secret_file::secret_file,
    urls::shard_url,
    values::{Secret, ShardUrl},
};

/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// What a configuration says of a cluster.
pub(super) struct Cluster {
    /// The catalog.
    pub catalog: Option<ShardUrl>,
    /// This node's name.
    pub name: Option<NodeName>,
    /// Where to serve other nodes.
    pub peer: String,
    /// What nodes show each other.
    pub peer_secret: Option<Secret>,
    /// Where clients reach this node.
    pub advertise_clients: Option<String>,
}

/// Checks it. `ports`: the node's other ports, with their keys.
pub(super) fn cluster(
    catalog: Catalog,
    node: &mut Node,
    secret: Option<Secret>,
    ports: [(&str, &str); 2],
    errors: &mut Vec<String>,
) -> Cluster {
    let catalog = catalog.url.and_then(|url| match shard_url(ShardId(0), &url) {
        Ok(url) => Some(url),
        Err(message) => {
            errors.push(format!("catalog.{message}"));
            None
        }
    });
    let peer = address("node.peer", node.peer.take(), "127.0.0.1:7422", errors);
    let file = node.peer_secret_file.take();
    let peer_secret = secret.or_else(|| secret_file("node.peer_secret_file", file?, errors));
    if catalog.is_some() {
        for (key, other) in ports {
            if overlap(&peer, other) {
                errors.push(format!("node.peer and {key} are the same port: {peer} and {other}"));
            }
        }
        match &peer_secret {
            None => errors.push(
                "node.peer_secret_file (or FOREBAY_PEER_SECRET) is missing: the nodes of a cluster share a \
                 secret"
                    .to_owned(),
            ),
            Some(secret) if secret.reveal().len() < SECRET_BYTES_MIN => {
                errors.push(format!("node.peer_secret_file must hold at least {SECRET_BYTES_MIN} bytes"));
            }
            Some(secret) if !secret.reveal().bytes().all(|byte| byte.is_ascii_graphic()) => {
                errors.push("node.peer_secret_file must hold printable ASCII characters only".to_owned());
            }
            Some(_) => {}
        }
    }
    let name = node.name.take().and_then(|name| match name.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            errors.push(format!("node.name: {error}"));
            None
        }
    });
    let advertise_clients = node.advertise_clients.take();
    let advertise_clients =
        advertise_clients.map(|text| address("node.advertise_clients", Some(text), "", errors));
    Cluster { catalog, name, peer, peer_secret, advertise_clients }
}
