//! Rows of a catalog for unit tests.

use forebay_store::{CatalogNode, NodeReport};
use forebay_types::Incarnation;

/// A node: its name, the number of its process, and how far its counter is.
pub(crate) fn node(name: &str, process: u8, beats: u64) -> CatalogNode {
    CatalogNode {
        name: name.parse().unwrap(),
        incarnation: Incarnation([process; 16]),
        peer_address: String::new(),
        clients_address: String::new(),
        http_address: String::new(),
        release: String::new(),
        format: 1,
        draining: false,
        started_at: None,
        beats,
        report: NodeReport::default(),
    }
}
