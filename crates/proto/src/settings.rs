//! Settings of topics and of namespaces: a namespace has one more.

use crate::v1::{NamespaceSettings, TopicSettings};

/// As those of a namespace, without a dedupe window.
impl From<TopicSettings> for NamespaceSettings {
    fn from(settings: TopicSettings) -> Self {
        Self {
            default_lease: settings.default_lease,
            default_max_attempts: settings.default_max_attempts,
            retry_delay: settings.retry_delay,
            dead_letter_retention: settings.dead_letter_retention,
            weight: settings.weight,
            dedupe_window: None,
        }
    }
}

impl NamespaceSettings {
    /// All of them but the dedupe window, which no topic has.
    pub fn for_topic(&self) -> TopicSettings {
        let Self { default_lease, default_max_attempts, retry_delay, dead_letter_retention, weight, .. } =
            *self;
        TopicSettings { default_lease, default_max_attempts, retry_delay, dead_letter_retention, weight }
    }
}
