//! Gauges, which are set when somebody looks.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use forebay_edge::tls::{CertificateState, Certificates};
use forebay_engine::{BreakerPhase, ShardState, ShardStatus, Status};
use forebay_membership::{ClusterState, Presence};
use forebay_store::Sweep;
use forebay_types::Timestamp;
use metrics::{counter, gauge};

use crate::info::NodeInfo;

/// Sets all gauges. Returns the counters of seconds, with their names.
pub fn set(node: &NodeInfo, status: Option<&Status>) -> Vec<(&'static str, f64)> {
    gauge!("forebay_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    for places in [&node.load.connections, &node.load.http_connections, &node.peers.0] {
        let port = places.port();
        gauge!("forebay_connections", "port" => port).set(places.in_use() as f64);
        gauge!("forebay_connections_guests", "port" => port).set(places.guests() as f64);
    }
    gauge!("forebay_streams").set(node.streams.open() as f64);
    certificates(&node.certificates);
    gauge!("forebay_insecure").set(f64::from(!node.exposed.is_empty()));
    gauge!("forebay_tokens_file_failed").set(f64::from(node.access.trouble().is_some()));
    super::memory::set(node, status);
    super::tokens::set(&node.access);
    gauge!("forebay_calls_at_work").set(node.load.calls.in_use() as f64);
    let state = node.cluster.borrow().clone();
    cluster(&state);
    super::peers::set(&state);
    let mut seconds = Vec::new();
    if let Some(status) = status {
        engine(status, node.clock.wall());
        super::topics::set(&node.metrics.history.latest(), status.topic_count, node.clock.wall());
        seconds.push(("forebay_loop_busy_seconds_total", status.turns.busy().as_secs_f64()));
    }
    seconds.extend(process().map(|seconds| ("process_cpu_seconds_total", seconds)));
    seconds
}

/// The certificates of the ports.
fn certificates(certificates: &Certificates) {
    for CertificateState { listener, ends, renewal_failed } in certificates.states() {
        let ends = ends.since(Timestamp::from_micros(0)).as_secs_f64();
        gauge!("forebay_certificate_expiry_timestamp_seconds", "listener" => listener).set(ends);
        let failed = f64::from(renewal_failed);
        gauge!("forebay_certificate_renewal_failed", "listener" => listener).set(failed);
    }
}

/// Figures of the process. Returns its CPU time in seconds.
fn process() -> Option<f64> {
    let process = metrics_process::collector::collect();
    let figures = [
        ("process_open_fds", process.open_fds),
        ("process_max_fds", process.max_fds),
        ("process_virtual_memory_bytes", process.virtual_memory_bytes),
        ("process_resident_memory_bytes", process.resident_memory_bytes),
        ("process_start_time_seconds", process.start_time_seconds),
        ("process_threads", process.threads),
    ];
    for (name, value) in figures {
        if let Some(value) = value {
            gauge!(name).set(value as f64);
        }
    }
    process.cpu_seconds_total
}

/// The cluster. A node without one is alone.
fn cluster(cluster: &ClusterState) {
    gauge!("forebay_catalog_answers").set(f64::from(cluster.catalog_trouble.is_empty()));
    let (mut live, mut draining, mut silent) = (0_usize, 0, 0);
    for node in &cluster.nodes {
        match node.presence() {
            Presence::Live | Presence::Joining => live += 1,
            Presence::Draining => draining += 1,
            Presence::Silent => silent += 1,
        }
    }
    let unreached = cluster.nodes.iter().filter(|node| node.live && !node.reached).count();
    for (state, count) in
        [("live", live), ("draining", draining), ("silent", silent), ("unreached", unreached)]
    {
        gauge!("forebay_nodes", "state" => state).set(count as f64);
    }
}

fn engine(status: &Status, now: Timestamp) {
    gauge!("forebay_polls_waiting").set(status.polls as f64);
    gauge!("forebay_paused", "side" => "enqueue").set(status.paused_enqueue as f64);
    gauge!("forebay_paused", "side" => "dequeue").set(status.paused_dequeue as f64);
    gauge!("forebay_missing_sources").set(status.missing_sources.len() as f64);
    gauge!("forebay_topics").set(status.topic_count as f64);
    counter!("forebay_loop_turns_total").absolute(status.turns.count);
    gauge!("forebay_loop_longest_turn_seconds").set(status.turns.longest().as_secs_f64());
    status.shards.iter().for_each(|status| shard(status, now));
    super::servers::set(&status.shards);
    forget(&status.shards, now);
}

/// A shard that was removed has nothing any more. A gauge that nobody sets would keep its last value. That it
/// has no owner is right: 0 would raise an alarm until the process ends.
fn forget(shards: &[ShardStatus], now: Timestamp) {
    static SHOWN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
    let present: BTreeSet<u32> = shards.iter().map(|shard| shard.id).collect();
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for id in shown.difference(&present) {
        shard(&ShardStatus { id: *id, ..ShardStatus::default() }, now);
        gauge!("forebay_shard_owned", "shard" => id.to_string()).set(f64::NAN);
    }
    *shown = present;
}

fn shard(shard: &ShardStatus, now: Timestamp) {
    let id = shard.id.to_string();
    let figures = [
        ("forebay_shard_owned", f64::from(shard.state == ShardState::Owned)),
        ("forebay_shard_answers", f64::from(shard.silent_since_micros.is_none())),
        ("forebay_shard_breaker_open", f64::from(shard.breaker != BreakerPhase::Closed)),
        ("forebay_shard_epoch", shard.epoch as f64),
        ("forebay_shard_index_bytes", shard.index_bytes as f64),
        ("forebay_shard_last_commit_seconds", shard.commit_micros as f64 / 1e6),
    ];
    for (name, value) in figures {
        gauge!(name, "shard" => id.clone()).set(value);
    }
    // A shard that others own has no sweeps here.
    for name in Sweep::ALL.map(Sweep::name) {
        let sweep = shard.sweeps.iter().find(|sweep| sweep.name == name);
        let next = sweep.and_then(|sweep| sweep.next_micros).map(Timestamp::from_micros);
        let lag = next.map_or(0.0, |next| now.since(next).as_secs_f64());
        gauge!("forebay_sweep_lag_seconds", "shard" => id.clone(), "sweep" => name).set(lag);
    }
    let items = [
        ("ready", shard.ready),
        ("leased", shard.leased),
        ("scheduled", shard.scheduled),
        ("dead", shard.dead),
    ];
    for (state, count) in items {
        gauge!("forebay_shard_items", "shard" => id.clone(), "state" => state).set(count as f64);
    }
}
