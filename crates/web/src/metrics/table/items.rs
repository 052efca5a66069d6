//! Metrics of items, namespaces and topics.

use super::labels::{CAUSES, FAR, ITEM_STATES, NAMES, NAMESPACES, OPERATION_OUTCOMES, OPERATIONS, SIDES};
use crate::metrics::metric::{Kind, Metric, Values, metric};

/// In the order of the documentation.
pub const ITEMS: &[Metric] = &[
    metric(
        Kind::Counter,
        "forebay_enqueued_total",
        &[("namespace", NAMESPACES)],
        "Items stored, and dead letters that came from another topic; duplicates do not count",
    ),
    metric(Kind::Counter, "forebay_delivered_total", &[("namespace", NAMESPACES)], "Deliveries that began"),
    metric(
        Kind::Counter,
        "forebay_acked_total",
        &[("namespace", NAMESPACES)],
        "Deliveries acked; an at-most-once delivery counts as acked",
    ),
    metric(
        Kind::Counter,
        "forebay_failed_deliveries_total",
        &[("namespace", NAMESPACES)],
        "Deliveries that were nacked, or whose lease ran out; releases do not count",
    ),
    metric(
        Kind::Counter,
        "forebay_nacked_total",
        &[("namespace", NAMESPACES)],
        "Deliveries that were nacked, whatever became of the item",
    ),
    metric(
        Kind::Counter,
        "forebay_lapsed_total",
        &[("namespace", NAMESPACES)],
        "Deliveries whose lease ran out, whatever became of the item",
    ),
    metric(
        Kind::Counter,
        "forebay_released_total",
        &[("namespace", NAMESPACES)],
        "Deliveries that were given back without a failure: by their consumer, by an operation, or by the \
         node itself, which could not deliver them",
    ),
    metric(
        Kind::Counter,
        "forebay_expired_total",
        &[("namespace", NAMESPACES)],
        "Items removed because their ttl was over",
    ),
    metric(
        Kind::Counter,
        "forebay_dead_lettered_total",
        &[("namespace", NAMESPACES), ("cause", CAUSES)],
        "Items that became dead letters, by why: `nacked`, `lease ended`, `dead-lettered`, or \
         `expired while failing`",
    ),
    metric(
        Kind::Counter,
        "forebay_redriven_total",
        &[("namespace", NAMESPACES)],
        "Dead letters that operations made items again",
    ),
    metric(Kind::Counter, "forebay_purged_total", &[("namespace", NAMESPACES)], "Items that purges removed"),
    metric(
        Kind::Counter,
        "forebay_cancelled_total",
        &[("namespace", NAMESPACES)],
        "Items and dead letters that were cancelled",
    ),
    metric(
        Kind::Counter,
        "forebay_duplicates_total",
        &[("namespace", NAMESPACES)],
        "Items that were not stored, since another one of their topic had been under their dedupe key",
    ),
    metric(
        Kind::Histogram,
        "forebay_delivery_wait_seconds",
        &[("namespace", NAMESPACES)],
        "How long an item had been ready when it was delivered",
    ),
    metric(
        Kind::Histogram,
        "forebay_handling_seconds",
        &[("namespace", NAMESPACES)],
        "How long a delivery had lasted when it was acked",
    ),
    metric(Kind::Counter, "forebay_extended_total", &[], "Leases extended"),
    metric(
        Kind::Counter,
        "forebay_dead_letters_deleted_total",
        &[],
        "Dead letters deleted because their retention was over",
    ),
    metric(
        Kind::Counter,
        "forebay_namespace_counts_dropped_total",
        &[],
        "Namespaces without topics of whose counts a shard kept no more, because it had too many of them",
    ),
    metric(Kind::Counter, "forebay_updated_total", &[], "Items that got other values by an update"),
    metric(
        Kind::Counter,
        "forebay_operation_items_total",
        &[("kind", OPERATIONS), ("outcome", OPERATION_OUTCOMES)],
        "Items that operations came across, by the kind of the operation and what became of them",
    ),
    metric(Kind::Gauge, "forebay_operations", &[("state", FAR)], "Operations with their home shard here"),
    metric(
        Kind::Gauge,
        "forebay_operation_idle_seconds",
        &[("operation", Values::Fixed(&[""]))],
        "Standstill of an operation, from one minute on; with an empty label the longest of others",
    ),
    metric(Kind::Counter, "forebay_topics_refused_total", &[], "Items refused with TOO_MANY_TOPICS"),
    metric(
        Kind::Gauge,
        "forebay_items",
        &[("namespace", NAMESPACES), ("state", ITEM_STATES)],
        "Items on the node's shards; a leased item is not counted as ready",
    ),
    metric(
        Kind::Gauge,
        "forebay_oldest_ready_age_seconds",
        &[("namespace", NAMESPACES)],
        "Age of the oldest ready item that is first in its topic, 0 if there is none",
    ),
    metric(
        Kind::Gauge,
        "forebay_paused",
        &[("side", SIDES)],
        "Topics and namespaces that are paused, as this node knows",
    ),
    metric(Kind::Gauge, "forebay_topics", &[], "Topics on the node's shards"),
    metric(
        Kind::Gauge,
        "forebay_topics_unreported",
        &[],
        "Topics on the node's shards that have no metrics of their own",
    ),
    metric(
        Kind::Counter,
        "forebay_topic_enqueued_total",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Items stored",
    ),
    metric(
        Kind::Counter,
        "forebay_topic_delivered_total",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Deliveries that began",
    ),
    metric(
        Kind::Counter,
        "forebay_topic_acked_total",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Deliveries acked",
    ),
    metric(
        Kind::Counter,
        "forebay_topic_failed_total",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Deliveries that were nacked, or whose lease ran out",
    ),
    metric(
        Kind::Counter,
        "forebay_topic_dead_lettered_total",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Items that became dead letters",
    ),
    metric(
        Kind::Histogram,
        "forebay_topic_delivery_wait_seconds",
        &[("namespace", NAMES), ("topic", NAMES)],
        "How long an item had been ready when it was delivered",
    ),
    metric(
        Kind::Gauge,
        "forebay_topic_items",
        &[("namespace", NAMES), ("topic", NAMES), ("state", ITEM_STATES)],
        "Items of the topic on the node's shards",
    ),
    metric(
        Kind::Gauge,
        "forebay_topic_oldest_ready_age_seconds",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Age of the oldest ready item, 0 if there is none",
    ),
    metric(
        Kind::Gauge,
        "forebay_topic_polls_waiting",
        &[("namespace", NAMES), ("topic", NAMES)],
        "Dequeues at this node that wait for the topic",
    ),
    metric(
        Kind::Gauge,
        "forebay_topic_paused",
        &[("namespace", NAMES), ("topic", NAMES), ("side", SIDES)],
        "1 if the side is paused, of the topic or of its namespace",
    ),
];
