//! The limits of admission control, and the counters that are held against them.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{
    call_rates::{ConnectionRate, NamespaceRates},
    namespace_bytes::NamespaceBytes,
};
use crate::connections::{Place, PlaceRules, Places, Stage};

/// Health checks, reflection and other streams that one connection may have open.
const SIDE_CALLS_PER_CONNECTION: usize = 32;
/// Health checks that are open on connections without a credential.
const ANONYMOUS_CALLS: usize = 256;

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
    /// Open gRPC connections. Set at start, by the number of file descriptors.
    pub connections: usize,
    /// The same over HTTP.
    pub http_connections: usize,
    /// How long a connection may be of no use.
    pub timeouts: ConnectionTimeouts,
    /// Calls in progress on the node; parked long polls are not counted.
    pub calls: usize,
    /// The same for one connection, so that one client cannot use up the node's calls.
    pub calls_per_connection: usize,
    /// Calls that one connection may make in a second.
    pub call_rate_per_connection: NonZeroU32,
    /// Calls that may be made for one namespace in a second, once it is known.
    pub call_rate_per_namespace: NonZeroU32,
    /// Long polls that one connection may park; one more is answered at once.
    pub parked_per_connection: usize,
    /// Bytes of requests that are being received or handled; bounds the node's memory.
    pub request_bytes: usize,
    /// The same for one connection.
    pub request_bytes_per_connection: usize,
    /// The same for one namespace, once it is known.
    pub request_bytes_per_namespace: usize,
    /// How long nothing of a request may arrive.
    pub body_timeout: Duration,
    /// Bytes of answers that clients have not read yet; beyond it calls are refused.
    pub unread_bytes: usize,
    /// The same for one connection, so that one slow reader cannot block the others.
    pub unread_bytes_per_connection: usize,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self {
            connections: usize::MAX,
            http_connections: usize::MAX,
            timeouts: ConnectionTimeouts::default(),
            calls: 4_096,
            calls_per_connection: 256,
            // A node serves fewer of the smallest calls.
            call_rate_per_connection: const { NonZeroU32::new(100_000).unwrap() },
            call_rate_per_namespace: const { NonZeroU32::new(200_000).unwrap() },
            parked_per_connection: 768,
            request_bytes: 256 << 20,
            request_bytes_per_connection: 32 << 20,
            request_bytes_per_namespace: 64 << 20,
            body_timeout: Duration::from_secs(5),
            unread_bytes: 256 << 20,
            unread_bytes_per_connection: 32 << 20,
        }
    }
}

/// Load that the node has taken on.
pub struct AdmissionLoad {
    /// The limits.
    pub limits: LoadLimits,
    /// Open gRPC connections.
    pub connections: Arc<Places>,
    /// Open HTTP connections.
    pub http_connections: Arc<Places>,
    /// Health checks on connections without a credential.
    pub anonymous_calls: Permits,
    /// Calls in progress.
    pub calls: Permits,
    /// Bytes of requests in memory.
    pub request_bytes: Permits,
    /// The same by namespace.
    pub namespaces: NamespaceBytes,
    /// Calls that come for each namespace.
    pub namespace_rates: NamespaceRates,
    /// Bytes of answers that clients have not read yet.
    pub unread: Permits,
}

impl AdmissionLoad {
    /// Nothing yet, at ports that are for everybody.
    #[cfg(any(test, feature = "testing"))]
    pub fn new(limits: &LoadLimits) -> Self {
        Self::with(limits, &PlaceRules::default())
    }

    /// Nothing yet. `rules`: how both ports give places.
    pub fn with(limits: &LoadLimits, rules: &PlaceRules) -> Self {
        Self {
            limits: *limits,
            connections: Places::new("grpc", limits.connections, rules),
            http_connections: Places::new("http", limits.http_connections, rules),
            anonymous_calls: Permits::new(ANONYMOUS_CALLS),
            calls: Permits::new(limits.calls),
            request_bytes: Permits::new(limits.request_bytes),
            namespaces: NamespaceBytes::new(limits.request_bytes_per_namespace),
            namespace_rates: NamespaceRates::new(limits.call_rate_per_namespace),
            unread: Permits::new(limits.unread_bytes),
        }
    }

    /// Takes `count` permits of a connection and of the node, or none.
    ///
    /// A connection of which nothing is taken always has room. Where the node has none, a connection may
    /// still have its part of a quarter of the node's permits, so that connections that take much do not shut
    /// out those that take little.
    pub fn take(&self, node: &Permits, connection: &Permits, count: usize) -> Result<(), Full> {
        let on_connection = connection.acquire_anyway(count);
        if on_connection > 0 && on_connection + count > connection.max {
            connection.release_many(count);
            return Err(Full::Connection);
        }
        let connections = self.connections.in_use() + self.http_connections.in_use();
        // One at least, however many connections there are.
        let part = (node.max / 4 / connections.max(1)).max(1);
        let on_node = node.acquire_anyway(count);
        if on_node > 0 && on_node + count > node.max && on_connection + count > part {
            node.release_many(count);
            connection.release_many(count);
            return Err(Full::Node);
        }
        Ok(())
    }
}

/// Side that has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The connection.
    Connection,
    /// The node.
    Node,
}

/// Load that one connection's calls have taken on.
pub struct ConnectionLoad {
    /// Calls that come.
    pub rate: ConnectionRate,
    /// Calls in progress.
    pub calls: Permits,
    /// Long polls that wait for an item.
    pub parked: Permits,
    /// Health checks and reflection.
    pub side_calls: Permits,
    /// Bytes of requests in memory.
    pub request_bytes: Permits,
    /// Bytes of answers that the client has not read yet.
    pub unread: Permits,
    /// Calls of any kind that have begun.
    begun: AtomicUsize,
    /// Its place at its port.
    place: Arc<Place>,
}

impl ConnectionLoad {
    /// Nothing yet. The connection has its place at least until this is dropped.
    pub fn new(limits: &LoadLimits, place: Arc<Place>) -> Self {
        Self {
            rate: ConnectionRate::new(limits.call_rate_per_connection),
            calls: Permits::new(limits.calls_per_connection),
            parked: Permits::new(limits.parked_per_connection),
            side_calls: Permits::new(SIDE_CALLS_PER_CONNECTION),
            request_bytes: Permits::new(limits.request_bytes_per_connection),
            unread: Permits::new(limits.unread_bytes_per_connection),
            begun: AtomicUsize::new(0),
            place,
        }
    }

    /// One more connection of a node that has room for it. It has shown no credential.
    #[cfg(any(test, feature = "testing"))]
    pub fn open(node: &AdmissionLoad) -> Option<Self> {
        Self::open_at(node, &node.connections)
    }

    /// The same at one of its ports.
    #[cfg(any(test, feature = "testing"))]
    pub fn open_at(node: &AdmissionLoad, port: &Arc<Places>) -> Option<Self> {
        let (place, _) = port.enter(std::net::Ipv4Addr::LOCALHOST.into())?;
        Some(Self::new(&node.limits, Arc::new(place)))
    }

    /// Its place at its port.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// A credential was accepted.
    pub fn accept(&self) {
        self.place.reach(Stage::Accepted);
    }

    /// A call begins.
    pub fn begin(&self) {
        self.place.reach(Stage::Called);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// How many calls have begun.
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }
}

/// A number of permits.
#[derive(Debug)]
pub struct Permits {
    /// Permits that were acquired and not released.
    in_use: AtomicUsize,
    /// How often the last one was released.
    emptied: AtomicUsize,
    /// The limit.
    max: usize,
}

impl Permits {
    /// None in use.
    pub fn new(max: usize) -> Self {
        Self { in_use: AtomicUsize::new(0), emptied: AtomicUsize::new(0), max }
    }

    /// Acquires one permit; `false` if none is free.
    pub fn try_acquire(&self) -> bool {
        let add = |in_use: usize| (in_use < self.max).then_some(in_use + 1);
        self.in_use.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).is_ok()
    }

    /// Acquires permits, whether they are free or not. Returns how many were in use before.
    pub fn acquire_anyway(&self, count: usize) -> usize {
        self.in_use.fetch_add(count, Ordering::AcqRel)
    }

    /// Returns one permit.
    pub fn release(&self) {
        self.release_many(1);
    }

    /// Returns `count` permits.
    pub fn release_many(&self, count: usize) {
        if count > 0 && self.in_use.fetch_sub(count, Ordering::AcqRel) == count {
            self.emptied.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many permits are in use.
    pub fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Acquire)
    }

    /// How often the last one was released.
    pub fn emptied(&self) -> usize {
        self.emptied.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_counted() {
        let permits = Permits::new(2);
        assert!(permits.try_acquire() && permits.try_acquire() && !permits.try_acquire());
        assert_eq!(permits.acquire_anyway(3), 2);
        permits.release_many(4);
        assert_eq!((permits.in_use(), permits.emptied()), (1, 0));
        permits.release();
        assert_eq!((permits.in_use(), permits.emptied()), (0, 1));
    }

    #[test]
    fn a_full_node_still_has_room_for_those_who_take_little() {
        let limits = LoadLimits { calls: 100, calls_per_connection: 50, ..Default::default() };
        let node = AdmissionLoad::new(&limits);
        let greedy = [ConnectionLoad::open(&node).unwrap(), ConnectionLoad::open(&node).unwrap()];
        for connection in &greedy {
            assert_eq!(node.take(&node.calls, &connection.calls, 50), Ok(()));
            assert_eq!(node.take(&node.calls, &connection.calls, 1), Err(Full::Connection));
        }
        let modest = ConnectionLoad::open(&node).unwrap();
        assert_eq!(node.take(&node.calls, &modest.calls, 9), Err(Full::Node));
        assert_eq!(node.take(&node.calls, &modest.calls, 8), Ok(()));
        assert_eq!(node.take(&node.calls, &modest.calls, 1), Err(Full::Node));
        assert_eq!((node.calls.in_use(), modest.calls.in_use()), (108, 8));
        let http = ConnectionLoad::open_at(&node, &node.http_connections).unwrap();
        assert_eq!(node.take(&node.calls, &http.calls, 7), Err(Full::Node), "a quarter of it for four");
        assert_eq!(node.take(&node.calls, &http.calls, 6), Ok(()));
    }
}
