//! Prometheus metrics. So many namespaces and topics have some of their own, and no more: names come from
//! callers.

mod gauges;
mod memory;
mod metric;
mod peers;
mod servers;
mod table;
mod tokens;
mod topics;

use std::{fmt::Write as _, sync::Mutex, time::Duration};

use axum::{http::header::CONTENT_TYPE, response::IntoResponse};
use forebay_types::ShardId;
use metrics::Label;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use self::metric::{Kind, Metric};
use super::info::State;

/// Histogram bounds of durations.
const BUCKETS_SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];
/// Histogram bounds of how long items wait for their delivery.
const BUCKETS_WAIT: [f64; 19] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0,
    3_600.0, 14_400.0,
];
/// Histogram bounds of the same of each topic: few, since a thousand topics have them.
const BUCKETS_TOPIC_WAIT: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0];
/// Histogram bounds of how long deliveries last.
const BUCKETS_HANDLING: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];
/// Histogram bounds of the rows of a batch.
const BUCKETS_ROWS: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0];
/// How often samples are moved into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Why metrics could not be set up.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MetricsError(#[from] BuildError);

/// The process's recorder, installed on first use. It has every counter from the start, those of these shards
/// too.
pub fn recorder(shards: &[ShardId]) -> Result<PrometheusHandle, MetricsError> {
    static RECORDER: Mutex<Option<PrometheusHandle>> = Mutex::new(None);
    // A panic inside the builder poisons the lock but leaves the value consistent.
    let mut recorder = RECORDER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(handle) = &*recorder {
        return Ok(handle.clone());
    }
    let named = |name: &str| Matcher::Full(name.to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets(&BUCKETS_SECONDS)?
        .set_buckets_for_metric(named("forebay_delivery_wait_seconds"), &BUCKETS_WAIT)?
        .set_buckets_for_metric(named("forebay_topic_delivery_wait_seconds"), &BUCKETS_TOPIC_WAIT)?
        .set_buckets_for_metric(named("forebay_handling_seconds"), &BUCKETS_HANDLING)?
        .set_buckets_for_metric(named("forebay_batch_rows"), &BUCKETS_ROWS)?;
    let handle = builder.install_recorder()?;
    table::all().for_each(|metric| register(metric, shards));
    *recorder = Some(handle.clone());
    Ok(handle)
}

/// Shards were added: their counters begin.
pub fn add_shards(shards: &[ShardId]) {
    table::all().for_each(|metric| register(metric, shards));
}

/// Tells the recorder what a metric means. Counters begin at 0.
fn register(metric: &Metric, shards: &[ShardId]) {
    match metric.kind {
        Kind::Counter => metrics::describe_counter!(metric.name, metric.help),
        Kind::Gauge => metrics::describe_gauge!(metric.name, metric.help),
        Kind::Histogram => metrics::describe_histogram!(metric.name, metric.help),
        Kind::Seconds => {}
    }
    if metric.kind == Kind::Counter {
        for labels in label_sets(metric, shards) {
            metrics::counter!(metric.name, labels).increment(0);
        }
    }
}

/// Each combination of what the labels may be.
fn label_sets(metric: &Metric, shards: &[ShardId]) -> Vec<Vec<Label>> {
    let mut sets = vec![Vec::new()];
    for (name, values) in metric.labels {
        let with = |set: &[Label], value: String| [set, &[Label::new(*name, value)]].concat();
        let longer = |set: &Vec<Label>| {
            values.list(shards, set).into_iter().map(|value| with(set, value)).collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(longer).collect();
    }
    sets
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
    let status = state.status.get().await;
    let seconds = gauges::set(&state, status.as_deref());
    let mut page = state.metrics.recorder.render();
    for (name, value) in seconds {
        let help = table::all().find(|metric| metric.name == name).map_or("", |metric| metric.help);
        // Writing to a string never fails.
        let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}");
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_a_name_that_says_its_type() {
        for metric in table::all() {
            let counts = matches!(metric.kind, Kind::Counter | Kind::Seconds);
            assert_eq!(metric.name.ends_with("_total"), counts, "{}", metric.name);
            assert!(!metric.help.is_empty() && !metric.help.contains(['|', '\n', '\\']), "{}", metric.name);
        }
    }

    #[test]
    fn a_counter_begins_with_each_combination_of_its_labels() {
        let metric = table::all().find(|metric| metric.name == "forebay_breaker_changes_total").unwrap();
        let sets = label_sets(metric, &[ShardId(1), ShardId(7)]);
        assert_eq!(sets.len(), 6);
        assert_eq!(sets[5], [Label::new("shard", "7"), Label::new("to", "closed")]);
    }

    #[test]
    fn a_service_has_its_own_methods_alone() {
        let sets = |name: &str| label_sets(table::all().find(|metric| metric.name == name).unwrap(), &[]);
        let calls = sets("forebay_calls_total");
        let is_ack = |set: &&Vec<Label>| set.contains(&Label::new("method", "Ack"));
        // Calls of three protocols, with seventeen codes.
        assert_eq!((calls.len(), calls.iter().filter(is_ack).count()), (8 * 3 * 17, 3 * 17));
        let refusals = sets("forebay_refusals_total");
        assert_eq!(refusals.len(), 7 * forebay_types::Reason::ALL.len());
    }

    #[test]
    fn every_metric_of_the_table_is_named_once() {
        let mut names: Vec<_> = table::all().map(|metric| metric.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]));
    }
}
