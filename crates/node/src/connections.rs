//! How many connections a port has. One over the cap is closed at once.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// What a connection of HTTP/2 begins with: the preface, and the head of the first frame behind it.
pub const HTTP2_BEGINNING_BYTES: usize = 24 + 9;
/// Refusals that follow one another within this time are one episode, which is logged once.
const EPISODE_GAP: Duration = Duration::from_secs(60);

/// The connections of one port.
#[derive(Debug)]
pub struct ConnectionCap {
    /// The port's name in metrics and in the key of the limit: `grpc`, `http` or `peer`.
    port: &'static str,
    /// The most connections.
    max: AtomicUsize,
    /// Connections that are open.
    open: AtomicUsize,
    /// Refused connections.
    refused: Episodes,
}

impl ConnectionCap {
    /// No connection yet.
    pub fn new(port: &'static str, max: usize) -> Arc<Self> {
        let (max, open) = (AtomicUsize::new(max), AtomicUsize::new(0));
        Arc::new(Self { port, max, open, refused: Episodes::default() })
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
        if self.refused.begins() {
            let port = self.port;
            tracing::warn!(max, "too many connections at the {port} port; further ones are closed");
        }
        None
    }

    /// Whether only the last eighth of them is free.
    pub fn is_crowded(&self) -> bool {
        let max = self.max.load(Ordering::Acquire);
        self.in_use() > max - max / 8
    }

    /// The port's name in metrics.
    pub fn port(&self) -> &'static str {
        self.port
    }

    /// Connections that are open.
    pub fn in_use(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}

/// What happens again and again, and is logged once an episode.
#[derive(Debug, Default)]
pub struct Episodes(Mutex<Option<Instant>>);

impl Episodes {
    /// It happens now: whether this is the first time for a while.
    pub fn begins(&self) -> bool {
        let now = Instant::now();
        // Nobody panics with the lock, and a time is always consistent.
        let mut last = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        last.replace(now).is_none_or(|last| now.duration_since(last) > EPISODE_GAP)
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
        assert!(cap.open().is_none() && !cap.refused.begins());
        drop(one);
        assert_eq!(cap.in_use(), 1);
        assert!(cap.open().is_some());
    }

    #[test]
    fn a_port_is_crowded_when_only_an_eighth_is_free() {
        let cap = ConnectionCap::new("http", 16);
        let _open: Vec<_> = (0..14).map(|_| cap.open().unwrap()).collect();
        assert!(!cap.is_crowded());
        let _one_more = cap.open().unwrap();
        assert!(cap.is_crowded());
    }
}
