//! Which other nodes answer this one.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use forebay_membership::ClusterState;
use metrics::gauge;

/// Sets the gauge. A node that has left is none any more. That is no 0, which would raise an alarm until this
/// process ends.
pub fn set(cluster: &ClusterState) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let others = cluster.nodes.iter().filter(|node| node.name != cluster.own);
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut gone = std::mem::take(&mut *shown);
    for node in others {
        let name = node.name.clone();
        gauge!("forebay_peer_up", "peer" => name.clone()).set(f64::from(node.live && node.reached));
        gone.remove(&name);
        shown.insert(name);
    }
    for name in gone {
        gauge!("forebay_peer_up", "peer" => name).set(f64::NAN);
    }
}
