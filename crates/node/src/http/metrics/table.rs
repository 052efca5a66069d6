//! Every metric: its type, its labels and what it means. `docs/METRICS.md` shows the same.

use super::metric::{
    Kind, Metric,
    Values::{self, Codes, Fixed, Reasons, Shards, Version},
};

/// What clients call.
const METHODS: Values =
    Fixed(&["Enqueue", "Dequeue", "Ack", "Nack", "ExtendLease", "GetActiveTopics", "other"]);
/// The keys of limits that refuse calls.
const LIMITS: Values = Fixed(&[
    "engine.calls",
    "engine.calls_per_connection",
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
    "audit",
]);
/// Where an item may be.
const ITEM_STATES: Values = Fixed(&["ready", "leased", "scheduled", "dead"]);
/// How a node may be.
const NODE_STATES: Values = Fixed(&["live", "draining", "silent", "unreached"]);
/// What a breaker may be.
const PHASES: Values = Fixed(&["open", "half-open", "closed"]);
/// The sweeps of a shard.
const SWEEPS: Values = Fixed(&["due", "expiry"]);
/// What operations do.
const OPERATIONS: Values = Fixed(&["purge", "delete-dead", "redrive", "reset-leases", "cancel", "update"]);
/// How far an operation is.
const FAR: Values = Fixed(&["pending", "running", "cancelling", "succeeded", "cancelled", "failed"]);
/// What becomes of an item of an operation.
const OPERATION_OUTCOMES: Values = Fixed(&["changed", "skipped", "failed"]);
/// The sides of a topic.
const SIDES: Values = Fixed(&["enqueue", "dequeue"]);
/// The ports of a node.
const PORTS: Values = Fixed(&["grpc", "http", "peer"]);
/// Those that clients use.
const CLIENT_PORTS: Values = Fixed(&["grpc", "http"]);
/// Why credentials are not accepted.
const CREDENTIALS: Values =
    Fixed(&["none", "repeated", "malformed", "unknown", "wrong", "ended", "revoked", "limited"]);
/// Why a TLS handshake fails.
const HANDSHAKES: Values = Fixed(&[
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
const FORWARDED: Values = Fixed(&["enqueue", "ack", "nack", "extend_lease"]);
/// What became of one.
const FORWARD_OUTCOMES: Values = Fixed(&["answered", "refused", "unreached", "lost"]);
/// Why a connection is closed.
const CLOSED: Values = Fixed(&["handshake", "idle", "unread"]);

const fn metric(
    kind: Kind,
    name: &'static str,
    labels: &'static [(&'static str, Values)],
    help: &'static str,
) -> Metric {
    Metric { kind, name, labels, help }
}

/// All metrics, in the order of the documentation.
pub const METRICS: &[Metric] = &[
    metric(Kind::Gauge, "forebay_build_info", &[("version", Version)], "1, with the version of the program"),
    metric(
        Kind::Counter,
        "forebay_calls_total",
        &[("method", METHODS), ("code", Codes)],
        "Answered calls by gRPC code; a call with failed members counts as Ok",
    ),
    metric(
        Kind::Histogram,
        "forebay_call_seconds",
        &[("method", METHODS)],
        "Duration of a call, with the wait of a long poll",
    ),
    metric(
        Kind::Counter,
        "forebay_refusals_total",
        &[("reason", Reasons)],
        "Refused calls, and refused members of calls, by the reason that clients see",
    ),
    metric(
        Kind::Counter,
        "forebay_limit_refusals_total",
        &[("limit", LIMITS)],
        "Calls refused by a limit of the node's edge, by the key of the limit",
    ),
    metric(Kind::Counter, "forebay_enqueued_total", &[], "Items stored; duplicates do not count"),
    metric(Kind::Counter, "forebay_delivered_total", &[], "Items delivered"),
    metric(Kind::Counter, "forebay_acked_total", &[], "Deliveries acked"),
    metric(
        Kind::Counter,
        "forebay_nacked_total",
        &[],
        "Deliveries nacked or released whose item waits again; the node itself releases what it could \
         not deliver",
    ),
    metric(
        Kind::Counter,
        "forebay_lease_timeouts_total",
        &[],
        "Deliveries whose lease ran out and whose item waits again",
    ),
    metric(Kind::Counter, "forebay_extended_total", &[], "Leases extended"),
    metric(Kind::Counter, "forebay_dead_lettered_total", &[], "Items that became dead letters"),
    metric(
        Kind::Counter,
        "forebay_dead_letters_deleted_total",
        &[],
        "Dead letters deleted because their retention was over",
    ),
    metric(Kind::Counter, "forebay_purged_total", &[], "Items that purges removed"),
    metric(Kind::Counter, "forebay_cancelled_total", &[], "Items and dead letters that were cancelled"),
    metric(Kind::Counter, "forebay_updated_total", &[], "Items that got other values by an update"),
    metric(Kind::Counter, "forebay_redriven_total", &[], "Dead letters that operations made items again"),
    metric(
        Kind::Counter,
        "forebay_operation_items_total",
        &[("kind", OPERATIONS), ("outcome", OPERATION_OUTCOMES)],
        "Items that operations came across, by the kind of the operation and what became of them",
    ),
    metric(Kind::Gauge, "forebay_operations", &[("state", FAR)], "Operations with their home shard here"),
    metric(Kind::Gauge, "forebay_operation_idle_seconds", &[], "Longest standstill of operations under way"),
    metric(Kind::Counter, "forebay_expired_total", &[], "Items removed because their ttl was over"),
    metric(Kind::Counter, "forebay_topics_refused_total", &[], "Items refused with TOO_MANY_TOPICS"),
    metric(
        Kind::Gauge,
        "forebay_items",
        &[("shard", Shards), ("state", ITEM_STATES)],
        "Items of a shard that this node owns; a leased item is not counted as ready",
    ),
    metric(
        Kind::Gauge,
        "forebay_oldest_ready_age_seconds",
        &[],
        "Age of the oldest ready item that is first in its topic, 0 if there is none; with many topics \
         as of the last look at all",
    ),
    metric(Kind::Gauge, "forebay_topics", &[], "Topics on the node's shards"),
    metric(
        Kind::Gauge,
        "forebay_nodes",
        &[("state", NODE_STATES)],
        "Nodes of the cluster, as this one sees them; without a catalog it is alone. Those that live and do \
         not answer it are counted as unreached too",
    ),
    metric(Kind::Gauge, "forebay_catalog_answers", &[], "1 if the catalog answers this node, or it has none"),
    metric(
        Kind::Counter,
        "forebay_forwarded_calls_total",
        &[("verb", FORWARDED), ("outcome", FORWARD_OUTCOMES)],
        "Calls passed on to the owner of a shard: answered, refused for lack of room on the way (refused), \
         not taken because the node can't be reached (unreached), or without an answer, so that their \
         outcome is unknown (lost)",
    ),
    metric(Kind::Gauge, "forebay_shard_owned", &[("shard", Shards)], "1 if this node owns the shard"),
    metric(Kind::Gauge, "forebay_shard_answers", &[("shard", Shards)], "0 if the shard does not answer"),
    metric(
        Kind::Gauge,
        "forebay_shard_breaker_open",
        &[("shard", Shards)],
        "1 if the breaker is open or half-open",
    ),
    metric(
        Kind::Gauge,
        "forebay_shard_epoch",
        &[("shard", Shards)],
        "Number of the present owner among all owners that the shard has had",
    ),
    metric(
        Kind::Gauge,
        "forebay_shard_last_commit_seconds",
        &[("shard", Shards)],
        "Duration of the last commit",
    ),
    metric(Kind::Gauge, "forebay_shard_index_bytes", &[("shard", Shards)], "Ready index and cached bodies"),
    metric(
        Kind::Gauge,
        "forebay_shard_clock_offset_seconds",
        &[("shard", Shards)],
        "How far the database server's clock is ahead of node time",
    ),
    metric(
        Kind::Histogram,
        "forebay_commit_seconds",
        &[("shard", Shards)],
        "Duration of a batch's commit, with retries",
    ),
    metric(Kind::Histogram, "forebay_batch_rows", &[], "Rows of a batch"),
    metric(
        Kind::Counter,
        "forebay_take_overs_total",
        &[("shard", Shards)],
        "Times this node took the shard over",
    ),
    metric(
        Kind::Counter,
        "forebay_breaker_changes_total",
        &[("shard", Shards), ("to", PHASES)],
        "Changes of the breaker, by the phase that began",
    ),
    metric(
        Kind::Counter,
        "forebay_replays_total",
        &[("shard", Shards)],
        "Batches that a conflict rolled back, and that were sent again",
    ),
    metric(
        Kind::Counter,
        "forebay_unknown_outcomes_total",
        &[("shard", Shards)],
        "Commits without an answer, so that the outcome had to be asked for",
    ),
    metric(
        Kind::Counter,
        "forebay_poisoned_batches_total",
        &[],
        "Batches in which the database refused a row",
    ),
    metric(
        Kind::Counter,
        "forebay_disk_full_batches_total",
        &[],
        "Batches for which a database's disk was full",
    ),
    metric(
        Kind::Counter,
        "forebay_shards_given_up_total",
        &[],
        "Times a shard was given up because its batches failed again and again or were stuck, or because the \
         node's memory of it was wrong",
    ),
    metric(
        Kind::Counter,
        "forebay_unstorable_changes_total",
        &[],
        "Changes that the database refuses and nobody waits for: ends of leases, rows of sweeps, \
         at-most-once items to be inserted again",
    ),
    metric(
        Kind::Counter,
        "forebay_vanished_items_total",
        &[],
        "Items of the ready index that were not in the store",
    ),
    metric(
        Kind::Counter,
        "forebay_sweep_moved_rows_total",
        &[("shard", Shards), ("sweep", SWEEPS)],
        "Rows that a sweep moved",
    ),
    metric(Kind::Counter, "forebay_prefetch_reads_total", &[], "Reads that fill the ready index"),
    metric(
        Kind::Counter,
        "forebay_heads_left_out_total",
        &[],
        "Times a shard was left out of the order because its first item was not read within 50 ms",
    ),
    metric(
        Kind::Counter,
        "forebay_lookups_refused_total",
        &[],
        "Settlements of deliveries that are over, refused because too many of them waited for a look-up",
    ),
    metric(
        Kind::Counter,
        "forebay_reads_without_connection_total",
        &[],
        "Reads that failed because all of this node's connections for them were in use for 2 s",
    ),
    metric(Kind::Gauge, "forebay_connections", &[("port", PORTS)], "Open connections"),
    metric(Kind::Gauge, "forebay_streams", &[], "Open pages that follow what happens"),
    metric(
        Kind::Counter,
        "forebay_connections_refused_total",
        &[("port", PORTS)],
        "Connections that were closed at once because the port had as many as it may",
    ),
    metric(
        Kind::Counter,
        "forebay_connections_closed_total",
        &[("port", PORTS), ("reason", CLOSED)],
        "Connections that were closed because they did not begin (handshake), had no call (idle), or \
         left answers unread (unread)",
    ),
    metric(
        Kind::Counter,
        "forebay_tls_handshake_failures_total",
        &[("listener", PORTS), ("reason", HANDSHAKES)],
        "TLS handshakes that failed: the client does not speak TLS (not_tls), is gone (closed), is too slow \
         (timeout), or was so while many others began one (displaced); it shows no certificate, or one that \
         is not accepted (bad_certificate); it does not accept the node's (refused_by_client), or has no \
         version or protocol in common with it (incompatible)",
    ),
    metric(
        Kind::Gauge,
        "forebay_certificate_expiry_timestamp_seconds",
        &[("listener", PORTS)],
        "When the certificate that a port shows ends, since the Unix epoch",
    ),
    metric(
        Kind::Gauge,
        "forebay_certificate_renewal_failed",
        &[("listener", PORTS)],
        "1 if the files of a port's certificate hold something that can't be used, so that the one before \
         stays in use",
    ),
    metric(
        Kind::Counter,
        "forebay_auth_failures_total",
        &[("listener", CLIENT_PORTS), ("reason", CREDENTIALS)],
        "Requests whose credentials were not accepted: there are none, or several tokens (repeated); what is \
         shown is no token (malformed), or is not known (unknown); the secret is another one (wrong); the \
         token has ended or was revoked; or a login failed as so many others did at that moment (limited)",
    ),
    metric(
        Kind::Gauge,
        "forebay_insecure",
        &[],
        "1 if the node can be reached from other machines without TLS or without access control",
    ),
    metric(
        Kind::Gauge,
        "forebay_tokens_file_failed",
        &[],
        "1 if the file of tokens holds something that can't be used, so that the tokens before stay in use",
    ),
    metric(
        Kind::Counter,
        "forebay_audit_failures_total",
        &[],
        "Records of calls that could not be written to the catalog. Calls that were to change something \
         were refused",
    ),
    metric(
        Kind::Counter,
        "forebay_idle_requests_total",
        &[],
        "Requests that were ended because nothing more of them arrived",
    ),
    metric(Kind::Gauge, "forebay_calls_at_work", &[], "Calls being served; waiting long polls do not count"),
    metric(Kind::Gauge, "forebay_polls_waiting", &[], "Dequeues that wait for an item or for their commit"),
    metric(
        Kind::Gauge,
        "forebay_paused",
        &[("side", SIDES)],
        "Topics and namespaces that are paused, as this node knows",
    ),
    metric(Kind::Gauge, "forebay_admitted_bytes", &[], "Enqueues that wait for their commit"),
    metric(Kind::Gauge, "forebay_poll_bytes", &[], "Long polls that wait"),
    metric(Kind::Gauge, "forebay_request_bytes", &[], "Requests being received or served"),
    metric(
        Kind::Gauge,
        "forebay_unsent_bytes",
        &[],
        "Answers that clients have not read yet, with 4 KiB for each open stream",
    ),
    metric(Kind::Counter, "forebay_loop_turns_total", &[], "Turns of the engine's event loop"),
    metric(
        Kind::Seconds,
        "forebay_loop_busy_seconds_total",
        &[],
        "Time that the engine's event loop has worked; it is one task, so one second a second is the \
         limit of the node",
    ),
    metric(
        Kind::Gauge,
        "forebay_loop_longest_turn_seconds",
        &[],
        "The longest turn of the event loop since the last look at the status; nobody else is served \
         meanwhile",
    ),
    metric(Kind::Seconds, "process_cpu_seconds_total", &[], "CPU time of the process"),
    metric(Kind::Gauge, "process_open_fds", &[], "Open file descriptors"),
    metric(Kind::Gauge, "process_max_fds", &[], "The most file descriptors that may be open"),
    metric(Kind::Gauge, "process_virtual_memory_bytes", &[], "Virtual memory"),
    metric(Kind::Gauge, "process_resident_memory_bytes", &[], "Resident memory"),
    metric(Kind::Gauge, "process_start_time_seconds", &[], "When the process started, since the Unix epoch"),
    metric(Kind::Gauge, "process_threads", &[], "Threads of the process"),
];
