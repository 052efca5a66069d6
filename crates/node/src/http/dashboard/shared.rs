//! What is read once for all readers of a node, since to read it costs more the more topics there are. Only
//! those may have it who may see the whole cluster: it is the same for all of them.

use forebay_proto::v1::{ListTopicsResponse, Namespace, Topic};
use tokio::sync::Mutex;

use super::kept::Kept;

/// What readers of a node share.
#[derive(Default)]
pub struct Shared {
    /// What the first page shows of topics and namespaces.
    pub wall: Kept<Wall>,
    /// The topics of all namespaces, in each order by a figure.
    pub topics: [Kept<ListTopicsResponse>; 5],
    /// Whoever holds it may have all topics put in order. A node lets in one walk at a time for those who
    /// look at all namespaces: pages wait for each other where calls would be refused.
    pub walk: Mutex<()>,
}

/// Topics and namespaces of the whole cluster.
#[derive(Debug, Default)]
pub struct Wall {
    /// Those that wait longest, and those with the most dead letters, each once.
    pub topics: Vec<Topic>,
    /// How many topics there are.
    pub scanned: u64,
    /// The first namespaces by name.
    pub namespaces: Vec<Namespace>,
    /// There are more of them.
    pub has_more_namespaces: bool,
    /// Shards that could not be asked.
    pub incomplete: Vec<u32>,
}
