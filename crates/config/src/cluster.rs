//! Checks what concerns the catalog and the other nodes of a cluster.

use std::path::PathBuf;

use forebay_types::{NodeName, ShardId, is_loopback};

use super::{
    addresses::{address, overlap},
    file::{Catalog, Node},
    secret_file::secret_file,
    urls::shard_url,
    values::{Secret, ShardConfig, ShardUrl},
};

/// The file of a catalog beside a shard that is a file.
const CATALOG_FILE: &str = "catalog.db";
/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;

/// Settings of a cluster.
pub(super) struct Cluster {
    /// The catalog.
    pub catalog: ShardUrl,
    /// Where the node keeps a copy of it.
    pub catalog_copy: Option<PathBuf>,
    /// This node's name.
    pub name: Option<NodeName>,
    /// Where to serve other nodes.
    pub peer: String,
    /// Secrets that nodes show each other.
    pub peer_secrets: Vec<Secret>,
    /// Where clients reach this node.
    pub advertise_clients: Option<String>,
}

/// Checks it. `ports`: the node's other ports, with their keys. Without a catalog of its own, the cluster has
/// it beside the first of the listed shards.
pub(super) fn cluster(
    catalog: Catalog,
    shards: &[ShardConfig],
    node: &Node,
    secret: Option<Secret>,
    ports: [(&str, &str); 2],
    errors: &mut Vec<String>,
) -> Cluster {
    let catalog_copy = catalog.copy_file.map(PathBuf::from);
    let catalog = catalog_url(catalog.url, shards, errors);
    let peer = address("node.peer", node.peer.clone(), errors);
    let file = node.peer_secret_file.clone();
    let secret = secret.or_else(|| secret_file("node.peer_secret_file", file?, errors));
    let peer_secrets = secret.map(|secret| secret.lines()).unwrap_or_default();
    // Without a secret and an address for others, the node is the only one of its cluster.
    if node.advertise.is_some() || !peer_secrets.is_empty() {
        for (key, other) in ports {
            if overlap(&peer, other) {
                errors.push(format!("node.peer and {key} are the same port: {peer} and {other}"));
            }
        }
        check_secrets(&peer_secrets, errors);
        check_advertised(&catalog, node.advertise.as_deref().unwrap_or(&peer), errors);
    }
    let name = node.name.as_ref().and_then(|name| match name.parse() {
        Ok(name) => Some(name),
        Err(error) => {
            errors.push(format!("node.name: {error}"));
            None
        }
    });
    let advertise_clients = node.advertise_clients.clone();
    let advertise_clients = advertise_clients.map(|text| address("node.advertise_clients", text, errors));
    if node.advertise.is_some() && node.advertise == advertise_clients {
        errors.push("node.advertise and node.advertise_clients are the same: each is of another port".into());
    }
    Cluster { catalog, catalog_copy, name, peer, peer_secrets, advertise_clients }
}

/// The catalog that is configured, or the one beside the shard with the lowest number.
fn catalog_url(given: Option<String>, shards: &[ShardConfig], errors: &mut Vec<String>) -> ShardUrl {
    match given.map(|url| shard_url(ShardId(0), &url)) {
        Some(Ok(url)) => return url,
        Some(Err(message)) => errors.push(format!("catalog.{message}")),
        None => {}
    }
    let first = shards.iter().min_by_key(|shard| shard.id).map(|shard| &shard.url);
    first.map_or_else(|| ShardUrl::Sqlite(CATALOG_FILE.into()), beside)
}

/// The catalog beside a shard: a file in its folder, or a schema at its server.
fn beside(shard: &ShardUrl) -> ShardUrl {
    match shard {
        ShardUrl::Sqlite(path) => ShardUrl::Sqlite(path.with_file_name(CATALOG_FILE)),
        ShardUrl::MySql(url) => {
            let (database, options) = url.split_at(url.find('?').unwrap_or(url.len()));
            ShardUrl::MySql(format!("{database}_catalog{options}"))
        }
    }
}

fn check_secrets(secrets: &[Secret], errors: &mut Vec<String>) {
    if secrets.is_empty() {
        let what = "node.peer_secret_file (or FOREBAY_PEER_SECRET) is missing";
        errors.push(format!("{what}: with node.advertise other nodes can join, and all share a secret"));
    }
    if secrets.iter().any(|secret| secret.reveal().len() < SECRET_BYTES_MIN) {
        let what = "node.peer_secret_file must hold at least";
        errors.push(format!("{what} {SECRET_BYTES_MIN} bytes in each line, which is one secret"));
    }
    if secrets.iter().any(|secret| !secret.reveal().bytes().all(|byte| byte.is_ascii_graphic())) {
        errors.push("node.peer_secret_file must hold printable ASCII characters only".to_owned());
    }
}

/// Other nodes find this one by its address in the catalog. Where the catalog is on another machine, they may
/// be on others too.
fn check_advertised(catalog: &ShardUrl, address: &str, errors: &mut Vec<String>) {
    let ShardUrl::MySql(url) = catalog else { return };
    let server = url.trim_start_matches("mysql://").split(['/', '?']).next().unwrap_or_default();
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    if is_loopback(address) && !is_loopback(server) {
        errors.push(format!(
            "other nodes can't reach this one at {address}, its address in the catalog: set node.peer to an \
             address of this machine, or node.advertise"
        ));
    }
}
