//! When tokens end, by the namespaces in which they are of use.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use forebay_edge::access::Access;
use forebay_types::Timestamp;
use metrics::gauge;

/// Namespaces that have the gauge: those whose tokens end first.
const NAMESPACES_MAX: usize = 200;

/// Sets the gauge. A token that has ended, or was replaced by one that ends later, is none any more: NaN is
/// less than nothing.
pub fn set(access: &Access) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut ends: Vec<(Timestamp, String)> =
        access.token_ends().into_iter().map(|(namespaces, ends)| (ends, namespaces)).collect();
    ends.sort_unstable();
    ends.truncate(NAMESPACES_MAX);
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut gone = std::mem::take(&mut *shown);
    for (at, namespace) in ends {
        let at = at.since(Timestamp::from_micros(0)).as_secs_f64();
        gauge!("forebay_token_expiry_timestamp_seconds", "namespace" => namespace.clone()).set(at);
        gone.remove(&namespace);
        shown.insert(namespace);
    }
    for namespace in gone {
        gauge!("forebay_token_expiry_timestamp_seconds", "namespace" => namespace).set(f64::NAN);
    }
}
