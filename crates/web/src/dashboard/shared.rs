//! Lists that are read once for all readers of a node, since to read them costs more the more topics there
//! are. Only visitors who may see the whole cluster may have them: they are the same for all of them.

use forebay_proto::v1::{ListNamespacesResponse, ListTopicsResponse};
use tokio::sync::Mutex;

use super::kept::ReadCache;

/// Lists that readers of a node share.
#[derive(Default)]
pub struct SharedLists {
    /// The topics of all namespaces with the greatest figures.
    pub greatest: ReadCache<ListTopicsResponse>,
    /// The first namespaces by name.
    pub namespaces: ReadCache<ListNamespacesResponse>,
    /// Whoever holds it may have all topics put in order. A node lets in one walk at a time for those who
    /// look at all namespaces: pages wait for each other where calls would be refused.
    pub walk: Mutex<()>,
}
