//! Connections of the node's ports: who has a place, who makes room for whom, and when one ends.
//!
//! `places.rs` owns the places of a port, `crowd.rs` the order in which its guests make room. `address.rs`
//! says who is one and the same. `lifetime.rs` tells a connection that it ends, and
//! `tls/guarded.rs` ends it.

mod address;
mod crowd;
mod episodes;
mod lifetime;
mod places;

pub use address::Network;
pub use crowd::Stage;
pub use episodes::Episodes;
pub use lifetime::{CREDENTIAL, CertificateEnd, Lifetime};
#[cfg(test)]
pub use places::HANDSHAKES_MAX;
pub use places::{Place, PlaceRules, Places};

/// A connection was closed because its client made no use of it, or others need its place more.
pub fn count_closed(port: &'static str, reason: &'static str) {
    metrics::counter!("forebay_connections_closed_total", "port" => port, "reason" => reason).increment(1);
}

#[cfg(test)]
mod tests;
