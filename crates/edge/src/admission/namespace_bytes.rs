//! Bytes of requests by namespace. A namespace is known once its request is decoded.

use std::sync::{Mutex, PoisonError};

use forebay_types::Namespace;
use rustc_hash::FxHashMap;

/// Number of bytes of each namespace.
pub struct NamespaceBytes {
    /// The most bytes of one namespace.
    max: usize,
    /// Namespaces with bytes. Bounded by the calls in progress.
    bytes: Mutex<FxHashMap<Namespace, usize>>,
}

impl NamespaceBytes {
    /// None yet.
    pub fn new(max: usize) -> Self {
        Self { max, bytes: Mutex::default() }
    }

    /// Counts bytes; `false` if there is no room for them.
    pub fn take(&self, namespace: &Namespace, bytes: usize) -> bool {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(namespace).copied().unwrap_or(0);
        if before > 0 && before + bytes > self.max {
            return false;
        }
        all.insert(namespace.clone(), before + bytes);
        true
    }

    /// They are not in memory any more.
    pub fn release(&self, namespace: &Namespace, bytes: usize) {
        let mut all = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = all.get_mut(namespace) {
            *left -= bytes;
            if *left == 0 {
                all.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_has_a_share() {
        let all = NamespaceBytes::new(100);
        let (a, b) = (Namespace::from("a"), Namespace::from("b"));
        assert!(all.take(&a, 60) && !all.take(&a, 60) && all.take(&b, 60));
        all.release(&a, 60);
        assert!(all.take(&a, 200), "a request that is alone");
        all.release(&a, 200);
        all.release(&b, 60);
        assert!(all.bytes.lock().unwrap().is_empty());
    }
}
