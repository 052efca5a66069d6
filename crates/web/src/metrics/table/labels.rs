//! Values of the labels of metrics.

use forebay_edge::admission::{PROTOCOLS as PROTOCOL_NAMES, SERVICES as SERVICE_NAMES};
use forebay_engine::{OwnMetrics, PeerFault};
use forebay_types::DeathCause;

use crate::metrics::metric::Values::{self, Fixed};

/// Whose methods clients call.
pub const SERVICES: Values = Fixed(&SERVICE_NAMES);
/// How calls come.
pub const PROTOCOLS: Values = Fixed(&PROTOCOL_NAMES);
/// The keys of limits that refuse calls.
pub const LIMITS: Values = Fixed(&[
    "engine.calls",
    "engine.calls_per_connection",
    "limits.call_rate_per_connection",
    "limits.call_rate_per_namespace",
    "memory.admit_bytes",
    "memory.forward_bytes",
    "memory.poll_bytes",
    "memory.request_bytes",
    "memory.request_bytes_per_connection",
    "memory.request_bytes_per_namespace",
    "memory.unsent_bytes",
    "memory.unsent_bytes_per_connection",
    "node.http_connections",
    "health checks and reflection",
    "calls to another node",
    "fetched bytes",
    "followed topics",
    "prefixes",
    "newly followed topics",
    "subscriptions",
    "audit",
]);
/// Where an item may be.
pub(crate) const ITEM_STATES: Values = Fixed(&["ready", "leased", "scheduled", "dead"]);
/// How a node may be.
pub(crate) const NODE_STATES: Values = Fixed(&["live", "draining", "silent", "unreached"]);
/// States of a breaker.
pub(crate) const PHASES: Values = Fixed(&["open", "half-open", "closed"]);
/// The sweeps of a shard.
pub(crate) const SWEEPS: Values = Fixed(&["due", "expiry", "retention"]);
/// The other nodes of the cluster.
pub(crate) const PEERS: Values = Fixed(&[]);
/// Database servers, as shards name them: `host:port`, or a folder.
pub const SERVERS: Values = Fixed(&[]);
/// Why an item became a dead letter.
pub(crate) const CAUSES: Values = {
    let [one, two, three, four] = DeathCause::ALL;
    Fixed(&[one.as_str(), two.as_str(), three.as_str(), four.as_str()])
};
/// Kinds of operations.
pub(crate) const OPERATIONS: Values =
    Fixed(&["purge", "delete-dead", "redrive", "reset-leases", "cancel", "update"]);
/// How far an operation is.
pub(crate) const FAR: Values =
    Fixed(&["pending", "running", "cancelling", "succeeded", "cancelled", "failed"]);
/// Outcomes of an item of an operation.
pub(crate) const OPERATION_OUTCOMES: Values = Fixed(&["changed", "skipped", "failed"]);
/// The sides of a topic.
pub(crate) const SIDES: Values = Fixed(&["enqueue", "dequeue"]);
/// The ports of a node.
pub(crate) const PORTS: Values = Fixed(&["grpc", "http", "peer"]);
/// The ports that clients use.
pub(crate) const CLIENT_PORTS: Values = Fixed(&["grpc", "http"]);
/// Why credentials are not accepted.
pub(crate) const CREDENTIALS: Values =
    Fixed(&["none", "repeated", "malformed", "unknown", "wrong", "ended", "revoked", "limited"]);
/// Why a TLS handshake fails.
pub(crate) const HANDSHAKES: Values = Fixed(&[
    "not_tls",
    "closed",
    "timeout",
    "displaced",
    "no_certificate",
    "bad_certificate",
    "refused_by_client",
    "incompatible",
    "other",
]);
/// The calls that are passed on to the owner of a shard.
pub(crate) const FORWARDED: Values = Fixed(&["enqueue", "ack", "nack", "extend_lease"]);
/// Outcomes of fetches from other nodes.
pub(crate) const FETCH_OUTCOMES: Values = Fixed(&["items", "empty", "refused", "late", "failed"]);
/// Parts of other nodes' messages that cannot be right.
pub(crate) const PEER_FAULTS: Values = Fixed(&PeerFault::NAMES);
/// Outcomes of a call that is passed on.
pub(crate) const FORWARD_OUTCOMES: Values = Fixed(&["answered", "refused", "unreached", "lost"]);
/// Why a connection is closed.
pub const CLOSED: Values =
    Fixed(&["handshake", "credential", "address", "port", "handshakes", "certificate", "idle", "unread"]);
/// Namespaces: the first ones that the node sees, and all others together.
pub const NAMESPACES: Values = Fixed(&[OwnMetrics::OTHERS]);
/// Names that callers give, of topics and their namespaces. None is known from the start.
pub const NAMES: Values = Fixed(&[]);
/// Namespaces as grants name them.
pub(crate) const GRANTED: Values = Fixed(&[]);
/// The uses of memory.
pub const BUDGETS: Values = Fixed(&[
    "requests",
    "unsent",
    "polls",
    "forwards",
    "enqueues",
    "followed",
    "subscriptions",
    "topics",
    "index",
]);
/// Why spans reach no collector.
pub(crate) const SPANS_DROPPED: Values = Fixed(&["full", "failed", "refused", "stopped"]);
