//! The limits of admission control, and the counters that are held against them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use forebay_types::{Reason, Refusal};

use crate::connections::{ConnectionCap, OpenConnection};

/// Health checks and reflection that one connection may have open.
const SIDE_CALLS_PER_CONNECTION: usize = 32;

/// How long a connection may be of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// Until the preface and the first frame have arrived.
    pub handshake: Duration,
    /// Without a call.
    pub idle: Duration,
    /// Without reading, while answers are unread.
    pub unread: Duration,
}

impl Default for ConnectionTimeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(900),
            unread: Duration::from_secs(30),
        }
    }
}

/// How much a node takes on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadLimits {
    /// Open connections. Set at start, by the number of file descriptors.
    pub connections: usize,
    /// How long a connection may be of no use.
    pub timeouts: ConnectionTimeouts,
    /// Calls in progress on the node; parked long polls are not counted.
    pub calls: usize,
    /// The same for one connection, so that one client cannot use up the node's calls.
    pub calls_per_connection: usize,
    /// Long polls that one connection may park; one more is answered at once.
    pub parked_per_connection: usize,
    /// Bytes of requests that are being received or handled; bounds the node's memory.
    pub request_bytes: usize,
    /// Bytes of answers that clients have not read yet; beyond it calls are refused.
    pub unread_bytes: usize,
    /// The same for one connection, so that one slow reader cannot block the others.
    pub unread_bytes_per_connection: usize,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            connections: usize::MAX,
            timeouts: ConnectionTimeouts::default(),
            calls: 4_096,
            calls_per_connection: 256,
            parked_per_connection: 768,
            request_bytes: 256 << 20,
            unread_bytes: 256 << 20,
            unread_bytes_per_connection: 32 << 20,
        }
    }
}

/// What the node has taken on.
pub struct AdmissionLoad {
    /// The limits.
    pub limits: LoadLimits,
    /// Open connections.
    pub connections: Arc<ConnectionCap>,
    /// Calls in progress.
    pub calls: Permits,
    /// Bytes of requests in memory.
    pub request_bytes: Permits,
    /// Bytes of answers that clients have not read yet.
    pub unread: UnreadBytes,
}

impl AdmissionLoad {
    /// Nothing yet.
    pub fn new(limits: &LoadLimits) -> Self {
        Self {
            limits: *limits,
            connections: ConnectionCap::new("grpc", limits.connections),
            calls: Permits::new(limits.calls),
            request_bytes: Permits::new(limits.request_bytes),
            unread: UnreadBytes::new(limits.unread_bytes),
        }
    }
}

/// What one connection's calls have taken on.
pub struct ConnectionLoad {
    /// Calls in progress.
    pub calls: Permits,
    /// Long polls that wait for an item.
    pub parked: Permits,
    /// Health checks and reflection.
    pub side_calls: Permits,
    /// Bytes of answers that the client has not read yet.
    pub unread: UnreadBytes,
    /// Calls of any kind that have begun.
    begun: AtomicUsize,
    /// Counts the connection while it is open.
    _open: OpenConnection,
}

impl ConnectionLoad {
    /// Nothing yet. The connection counts as open until this is dropped. `None`: the node has as many as it
    /// may.
    pub fn open(node: &AdmissionLoad) -> Option<Self> {
        let open = node.connections.open()?;
        Some(Self {
            calls: Permits::new(node.limits.calls_per_connection),
            parked: Permits::new(node.limits.parked_per_connection),
            side_calls: Permits::new(SIDE_CALLS_PER_CONNECTION),
            unread: UnreadBytes::new(node.limits.unread_bytes_per_connection),
            begun: AtomicUsize::new(0),
            _open: open,
        })
    }

    /// A call begins.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

/// The refusal of a call that would exceed a limit, which is named by its key. It is counted.
pub fn overloaded(limit: &'static str, message: &str) -> Refusal {
    metrics::counter!("forebay_limit_refusals_total", "limit" => limit).increment(1);
    Refusal::new(Reason::Overloaded, format!("{message} (the limit is `{limit}`)"))
}

/// A counter that never exceeds its maximum.
pub struct Permits {
    /// Permits that were acquired and not released.
    in_use: AtomicUsize,
    /// The limit.
    max: usize,
}

impl Permits {
    /// None in use.
    pub fn new(max: usize) -> Self {
        Self { in_use: AtomicUsize::new(0), max }
    }

    /// Acquires one permit; `false` if none is free.
    pub fn try_acquire(&self) -> bool {
        self.try_acquire_many(1)
    }

    /// Acquires `count` permits, or none and returns `false`.
    pub fn try_acquire_many(&self, count: usize) -> bool {
        let add = |in_use: usize| in_use.checked_add(count).filter(|sum| *sum <= self.max);
        self.in_use.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Returns one permit.
    pub fn release(&self) {
        self.release_many(1);
    }

    /// Returns `count` permits.
    pub fn release_many(&self, count: usize) {
        self.in_use.fetch_sub(count, Ordering::AcqRel);
    }

    /// How many permits are in use.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Acquire)
    }
}

/// Counts bytes of answers until the client has read them.
///
/// The size of an answer is known only after the call took effect, so an answer may exceed the maximum. The
/// next call is refused then.
#[derive(Debug)]
pub struct UnreadBytes {
    /// Bytes that clients have not read yet.
    bytes: AtomicUsize,
    /// How often everything had been read.
    emptied: AtomicUsize,
    /// The limit.
    max: usize,
}

impl UnreadBytes {
    /// Nothing unread.
    pub fn new(max: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), emptied: AtomicUsize::new(0), max }
    }

    /// Counts bytes. Returns how many there were before.
    pub fn add(&self, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes, Ordering::AcqRel)
    }

    /// They were read, or their client is gone.
    pub fn remove(&self, bytes: usize) {
        if self.bytes.fetch_sub(bytes, Ordering::AcqRel) == bytes {
            self.emptied.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often everything had been read.
    pub fn emptied(&self) -> usize {
        self.emptied.load(Ordering::Relaxed)
    }

    /// How many bytes are unread.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// The limit.
    pub fn max(&self) -> usize {
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_never_exceed_their_maximum() {
        let permits = Permits::new(10);
        assert!(permits.try_acquire_many(9) && permits.try_acquire() && !permits.try_acquire());
        permits.release_many(4);
        assert!(!permits.try_acquire_many(5) && permits.try_acquire_many(4));
        assert!(!permits.try_acquire_many(usize::MAX));
        assert_eq!(permits.in_use(), 10);
    }
}
