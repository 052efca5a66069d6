//! Namespaces, as the messages that they came in.

use forebay_client::{NamespaceFigures, NamespaceReport};
use forebay_proto::v1;

use super::{
    messages::{counts, pause, rates, time},
    settings::namespace_settings,
};

/// A namespace.
pub fn namespace(it: &NamespaceFigures) -> v1::Namespace {
    v1::Namespace {
        namespace: it.namespace.clone(),
        settings: Some(namespace_settings(&it.settings)).filter(|_| !it.settings.is_nothing()),
        settings_version: it.settings_version,
        topic_count: it.topics,
        ready_count: it.ready,
        leased_count: it.leased,
        scheduled_count: it.scheduled,
        dead_count: it.dead,
        oldest_ready_at: it.oldest_ready_at.map(time),
        waiting_calls: it.waiting,
        pauses: it.pauses.iter().map(pause).collect(),
        topics_cut: it.topics_cut,
        counts: it.counts.map(counts),
        rates: it.rates.map(rates),
    }
}

/// A namespace with what counts for its topics.
pub fn namespace_report(report: &NamespaceReport) -> v1::GetNamespaceResponse {
    v1::GetNamespaceResponse {
        namespace: Some(namespace(&report.figures)),
        effective_settings: Some(namespace_settings(&report.effective)),
        incomplete_shards: report.incomplete_shards.clone(),
        uncounted_shards: report.uncounted_shards.clone(),
    }
}
