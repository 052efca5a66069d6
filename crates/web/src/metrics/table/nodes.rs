//! Metrics of a node: calls, its cluster, connections, access, memory and the process.

use super::labels::{
    BUDGETS, CLIENT_PORTS, CLOSED, CREDENTIALS, FETCH_OUTCOMES, FORWARD_OUTCOMES, FORWARDED, GRANTED,
    HANDSHAKES, LIMITS, NAMESPACES, NODE_STATES, PEER_FAULTS, PEERS, PORTS, PROTOCOLS, SERVICES,
    SPANS_DROPPED,
};
use crate::metrics::metric::{
    Kind, Metric,
    Values::{Codes, Methods, Reasons, Version},
    metric,
};

/// In the order of the documentation.
pub const NODES: &[Metric] = &[
    metric(Kind::Gauge, "forebay_build_info", &[("version", Version)], "1, with the version of the program"),
    metric(
        Kind::Counter,
        "forebay_calls_total",
        &[("service", SERVICES), ("method", Methods), ("protocol", PROTOCOLS), ("code", Codes)],
        "Answered calls by gRPC code; a call with failed members counts as Ok. Those of pages are made by \
         the node for whoever reads them",
    ),
    metric(
        Kind::Histogram,
        "forebay_call_seconds",
        &[("method", Methods)],
        "Duration of a call, with the wait of a long poll",
    ),
    metric(
        Kind::Counter,
        "forebay_refusals_total",
        &[("namespace", NAMESPACES), ("method", Methods), ("reason", Reasons)],
        "Refused calls, and refused members of calls, by the reason that clients see. A namespace has its \
         name once something has happened in it; \
         what is refused to callers without a right in it is of (others)",
    ),
    metric(
        Kind::Counter,
        "forebay_limit_refusals_total",
        &[("limit", LIMITS)],
        "Calls refused by a limit of the node's edge, by the key of the limit",
    ),
    metric(
        Kind::Gauge,
        "forebay_nodes",
        &[("state", NODE_STATES)],
        "Nodes of the cluster, as this one sees them. Those that live and do \
         not answer it are counted as unreached too",
    ),
    metric(
        Kind::Gauge,
        "forebay_peer_up",
        &[("peer", PEERS)],
        "1 if another node of the cluster lives and answers this one, 0 if not",
    ),
    metric(
        Kind::Gauge,
        "forebay_catalog_answers",
        &[],
        "1 if the catalog answers this node and no other node excludes it",
    ),
    metric(
        Kind::Gauge,
        "forebay_catalog_copy_timestamp_seconds",
        &[],
        "When the node last found its copy of the catalog (catalog.copy_file) to be as that is, in Unix \
         time. Absent without one",
    ),
    metric(
        Kind::Counter,
        "forebay_forwarded_calls_total",
        &[("verb", FORWARDED), ("outcome", FORWARD_OUTCOMES)],
        "Calls passed on to the owner of a shard: answered, refused for lack of room on the way (refused), \
         not taken because the node can't be reached (unreached), or without an answer, so that their \
         outcome is unknown (lost)",
    ),
    metric(
        Kind::Counter,
        "forebay_fetches_total",
        &[("outcome", FETCH_OUTCOMES)],
        "Times items were asked for at another node: it gave some (items) or none (empty), refused, did not \
         answer within 250 ms (late), or not at all (failed)",
    ),
    metric(
        Kind::Counter,
        "forebay_peer_faults_total",
        &[("fault", PEER_FAULTS)],
        "Parts of other nodes' messages that no node of this release sends, and that were left out",
    ),
    metric(
        Kind::Gauge,
        "forebay_missing_sources",
        &[],
        "Nodes that live, and whose items do not come to the consumers of this one: they tell nothing of \
         their shards, answer late, or are of an earlier release",
    ),
    metric(
        Kind::Counter,
        "forebay_fetched_items_total",
        &[],
        "Items of other nodes' shards that were fetched for polls of this node",
    ),
    metric(
        Kind::Counter,
        "forebay_at_most_once_lost_total",
        &[],
        "At-most-once items of other nodes' shards that nobody received: whether they were out of their \
         shards was not certain, or the caller was gone",
    ),
    metric(Kind::Gauge, "forebay_connections", &[("port", PORTS)], "Open connections"),
    metric(
        Kind::Gauge,
        "forebay_connections_guests",
        &[("port", PORTS)],
        "Those of them on which no credential was accepted yet",
    ),
    metric(Kind::Gauge, "forebay_streams", &[], "Open pages that follow what happens"),
    metric(
        Kind::Counter,
        "forebay_connections_refused_total",
        &[("port", PORTS)],
        "Connections that were closed at once because the port had as many as it may, all with a credential",
    ),
    metric(
        Kind::Counter,
        "forebay_connections_closed_total",
        &[("port", PORTS), ("reason", CLOSED)],
        "Connections that were closed because they did not begin or had no call in time (handshake), had no \
         credential in time (credential), made room for others of their address (address), at a full port \
         (port) or for other handshakes (handshakes), had a certificate that ended or lost its authority \
         (certificate), had no call (idle), or left answers unread (unread)",
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
        "forebay_token_expiry_timestamp_seconds",
        &[("namespace", GRANTED)],
        "When the first of the tokens ends that grants something in a namespace, as the grant names it, \
         since the Unix epoch; of the 200 that end first, and NaN once no token ends there",
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
        "forebay_spans_dropped_total",
        &[("cause", SPANS_DROPPED)],
        "Spans that reached no collector: too many waited to be sent (full), the collector did not answer \
         (failed) or did not take them (refused), or the node had stopped (stopped)",
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
        Kind::Histogram,
        "forebay_poll_wait_seconds",
        &[],
        "How long a Dequeue waited for its answer, with the commit of its leases; one that does not wait \
         counts too",
    ),
    metric(
        Kind::Gauge,
        "forebay_memory_bytes",
        &[("budget", BUDGETS)],
        "Memory in use: requests being received or served, answers that clients have not read yet \
         (unsent, with 4 KiB for each open stream), long polls that wait, calls on their way to other nodes \
         (forwards: to the one to which most are), enqueues that wait for their commit, topics that this \
         node follows at other nodes (followed) and that these follow here (subscriptions), rows of topics, \
         and ready index with cached bodies (index)",
    ),
    metric(
        Kind::Gauge,
        "forebay_memory_limit_bytes",
        &[("budget", BUDGETS)],
        "What that may be at most; beyond it calls are refused, or the index is read again from the \
         database",
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
