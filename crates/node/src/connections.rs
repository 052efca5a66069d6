//! How many connections a port has. One over the cap is closed at once.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Refusals that follow one another within this time are one episode, which is logged once.
const EPISODE_GAP: Duration = Duration::from_secs(60);

/// The connections of one port.
#[derive(Debug)]
pub struct ConnectionCap {
    /// The port's name in metrics and in the key of the limit: `grpc` or `http`.
    port: &'static str,
    /// The most connections.
    max: AtomicUsize,
    /// Connections that are open.
    open: AtomicUsize,
    /// When a connection was refused last.
    refused: Mutex<Option<Instant>>,
}

impl ConnectionCap {
    /// No connection yet.
    pub fn new(port: &'static str, max: usize) -> Arc<Self> {
        let (max, open) = (AtomicUsize::new(max), AtomicUsize::new(0));
        Arc::new(Self { port, max, open, refused: Mutex::new(None) })
    }

    /// The most connections from now on. Those that are open stay open.
    pub fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Release);
    }

    /// Counts one more connection; `None` if the port has as many as it may.
    pub fn open(self: &Arc<Self>) -> Option<OpenConnection> {
        let max = self.max.load(Ordering::Acquire);
        let add = |open: usize| (open < max).then_some(open + 1);
        if self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok() {
            return Some(OpenConnection(self.clone()));
        }
        metrics::counter!("forebay_connections_refused_total", "port" => self.port).increment(1);
        if self.begins_episode() {
            let port = self.port;
            tracing::warn!(max, "too many connections at the {port} port; further ones are closed");
        }
        None
    }

    /// Connections that are open.
    pub fn in_use(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Whether this refusal is the first for a while.
    fn begins_episode(&self) -> bool {
        let now = Instant::now();
        // Nobody panics with the lock, and a time is always consistent.
        let mut refused = self.refused.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        refused.replace(now).is_none_or(|last| now.duration_since(last) > EPISODE_GAP)
    }
}

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub struct OpenConnection(Arc<ConnectionCap>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A connection was closed because its client made no use of it.
pub fn count_closed(port: &'static str, reason: &'static str) {
    metrics::counter!("forebay_connections_closed_total", "port" => port, "reason" => reason).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_over_the_cap_is_refused_and_the_episode_begins_once() {
        let cap = ConnectionCap::new("grpc", 2);
        let (one, _two) = (cap.open().unwrap(), cap.open().unwrap());
        assert!(cap.open().is_none() && !cap.begins_episode());
        drop(one);
        assert_eq!(cap.in_use(), 1);
        assert!(cap.open().is_some());
    }
}
