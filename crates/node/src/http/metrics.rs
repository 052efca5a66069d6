//! Prometheus metrics. Their labels name shards and calls, never tenants or topics.

use std::{sync::Mutex, time::Duration};

use axum::{http::header::CONTENT_TYPE, response::IntoResponse};
use forebay_engine::{BreakerPhase, ShardState, Status};
use metrics::{counter, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::info::State;

/// Histogram bounds of durations.
const BUCKETS_SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];
/// Histogram bounds of the rows of a batch.
const BUCKETS_ROWS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0];
/// How often samples are moved into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Why metrics could not be set up.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MetricsError(#[from] BuildError);

/// The process's recorder, installed on first use.
pub fn recorder() -> Result<PrometheusHandle, MetricsError> {
    static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    // A panic inside the builder poisons the lock but leaves the value consistent.
    let mut recorder = RECORDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(handle) = &*recorder {
        return Ok(handle.clone());
    }
    let rows = Matcher::Full("forebay_batch_rows".to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS_SECONDS)?
        .set_buckets_for_metric(rows, &BUCKETS_ROWS)?;
    let handle = builder.install_recorder()?;
    *recorder = Some(handle.clone());
    Ok(handle)
}

/// Bounds the samples that are held between two scrapes.
pub async fn upkeep(recorder: PrometheusHandle) {
    let mut tick = tokio::time::interval(UPKEEP_EVERY);
    loop {
        tick.tick().await;
        recorder.run_upkeep();
    }
}

/// Serves `/metrics`.
pub async fn metrics(state: State) -> impl IntoResponse {
    if let Some(status) = state.status.get().await {
        set(&status);
    }
    gauge!("forebay_connections", "port" => "grpc").set(state.load.connections.in_use() as f64);
    gauge!("forebay_connections", "port" => "http").set(state.http_connections.in_use() as f64);
    gauge!("forebay_poll_bytes").set(state.engine.waiting_bytes() as f64);
    gauge!("forebay_calls_at_work").set(state.load.calls.in_use() as f64);
    gauge!("forebay_request_bytes").set(state.load.request_bytes.in_use() as f64);
    gauge!("forebay_unsent_bytes").set(state.load.unread.in_use() as f64);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.recorder.render())
}

fn set(status: &Status) {
    gauge!("forebay_polls_waiting").set(status.polls as f64);
    gauge!("forebay_admitted_bytes").set(status.admitted_bytes as f64);
    gauge!("forebay_topics").set(status.topic_count as f64);
    counter!("forebay_loop_turns_total").absolute(status.turns.count);
    gauge!("forebay_loop_busy_seconds").set(status.turns.busy().as_secs_f64());
    gauge!("forebay_loop_longest_turn_seconds").set(status.turns.longest().as_secs_f64());
    for shard in &status.shards {
        let id = shard.id.to_string();
        let figures = [
            ("forebay_shard_owned", f64::from(shard.state == ShardState::Owned)),
            ("forebay_shard_breaker_open", f64::from(shard.breaker != BreakerPhase::Closed)),
            ("forebay_shard_epoch", shard.epoch as f64),
            ("forebay_shard_batch", shard.batch as f64),
            ("forebay_shard_index_bytes", shard.index_bytes as f64),
            ("forebay_shard_commit_seconds", shard.commit_micros as f64 / 1e6),
            ("forebay_shard_clock_offset_seconds", shard.clock_offset_micros as f64 / 1e6),
        ];
        for (name, value) in figures {
            gauge!(name, "shard" => id.clone()).set(value);
        }
        let items = [
            ("ready", shard.ready),
            ("leased", shard.leased),
            ("scheduled", shard.scheduled),
            ("dead", shard.dead),
        ];
        for (state, count) in items {
            gauge!("forebay_items", "shard" => id.clone(), "state" => state).set(count as f64);
        }
        for sweep in &shard.sweeps {
            gauge!("forebay_sweep_moved_rows", "shard" => id.clone(), "sweep" => sweep.name.clone())
                .set(sweep.moved as f64);
        }
    }
}
