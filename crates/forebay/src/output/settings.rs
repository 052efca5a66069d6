//! Settings, as the messages that they came in.

use std::time::Duration;

use forebay_client::{SettingsDifference, SettingsReport, TopicSettings};
use forebay_proto::v1;

pub(super) fn span(span: Duration) -> prost_types::Duration {
    // Servers take no longer ones than the type holds.
    span.try_into().unwrap_or_default()
}

/// What is set for a topic.
pub fn topic_settings(settings: &TopicSettings) -> v1::TopicSettings {
    v1::TopicSettings {
        default_lease: settings.default_lease.map(span),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(span),
        dead_letter_retention: settings.dead_letter_retention.map(span),
    }
}

/// What is set for a namespace.
pub fn namespace_settings(settings: &TopicSettings) -> v1::NamespaceSettings {
    v1::NamespaceSettings {
        dedupe_window: settings.dedupe_window.map(span),
        dead_letter_retention: settings.dead_letter_retention.map(span),
        default_lease: settings.default_lease.map(span),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(span),
    }
}

/// The settings of a topic after a change.
pub fn put_topic(report: &SettingsReport) -> v1::PutTopicResponse {
    v1::PutTopicResponse {
        settings: Some(topic_settings(&report.settings)),
        version: report.version,
        effective_settings: Some(topic_settings(&report.effective)),
    }
}

/// The settings of a namespace after a change.
pub fn put_namespace(report: &SettingsReport) -> v1::PutNamespaceResponse {
    v1::PutNamespaceResponse {
        settings: Some(namespace_settings(&report.settings)),
        version: report.version,
        effective_settings: Some(namespace_settings(&report.effective)),
    }
}

/// What a document changes of one topic, or of a namespace.
pub fn settings_difference(it: &SettingsDifference) -> v1::SettingsDifference {
    v1::SettingsDifference {
        namespace: it.namespace.clone(),
        topic: it.topic.clone(),
        before: it.before.as_ref().map(namespace_settings),
        after: it.after.as_ref().map(namespace_settings),
    }
}
