//! Gauges of what memory is used for, each with its limit.

use forebay_engine::Status;
use metrics::gauge;

use crate::info::NodeInfo;

/// Sets them. `status`: of the engine, if it runs.
pub fn set(node: &NodeInfo, status: Option<&Status>) {
    let (load, settings) = (&node.load, &node.metrics.settings);
    budget("requests", load.request_bytes.in_use(), load.limits.request_bytes);
    budget("unsent", load.unread.in_use(), load.limits.unread_bytes);
    budget("polls", node.engine.waiting_bytes(), settings.poll_bytes);
    let (forwarded, most) = node.peers.1.forwarded_bytes();
    budget("forwards", forwarded, most);
    let Some(status) = status else { return };
    budget("enqueues", status.admitted_bytes, settings.admit_bytes);
    budget("followed", status.followed_bytes, settings.followed_bytes);
    budget("subscriptions", status.subscription_bytes, settings.followed_bytes);
    budget("topics", status.topic_bytes, settings.topic_bytes);
    let index = status.shards.iter().map(|shard| shard.index_bytes).sum();
    budget("index", index, settings.index_bytes);
}

fn budget(name: &'static str, used: usize, limit: usize) {
    gauge!("forebay_memory_bytes", "budget" => name).set(used as f64);
    gauge!("forebay_memory_limit_bytes", "budget" => name).set(limit as f64);
}
