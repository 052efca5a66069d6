//! Sources of a node's metrics, beside its state.

use forebay_engine::Settings;
use forebay_peers::history::History;
use metrics_exporter_prometheus::PrometheusHandle;

/// Sources of a node's metrics, beside its state.
pub struct MetricSources {
    /// Renders them.
    pub recorder: PrometheusHandle,
    /// How namespaces and topics were last.
    pub history: History,
    /// The limits of the engine.
    pub settings: Settings,
}
