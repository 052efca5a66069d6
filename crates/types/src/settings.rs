//! Settings for the items of a topic, of topics that begin alike, or of all topics of a namespace.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::TopicName;

/// The settings of a topic, a pattern or a namespace. An absent one is taken from the next wider scope: a
/// topic's from the longest pattern that covers the topic and has it, then from its namespace, and a
/// namespace's from the node's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct TopicSettings {
    /// The lease of an item that names none. Items have it from their enqueue on.
    pub default_lease: Option<Duration>,
    /// After so many failed deliveries an item that names no number is a dead letter. Items have it from
    /// their enqueue on.
    pub default_max_attempts: Option<u32>,
    /// How long an item waits after a failed delivery whose nack names no delay, and after a lease that ran
    /// out. Zero: not at all. It counts for every failure from now on.
    pub retry_delay: Option<Duration>,
    /// How long dead letters are kept. Zero: for ever. A longer one counts for those that are there, too.
    pub dead_letter_retention: Option<Duration>,
    /// Of a topic: the items that one of its turns hands out among the topics of a prefix. Of a pattern: that
    /// of each topic that it covers. Of a namespace: its part of what a node does at a time, beside other
    /// namespaces; its topics do not have it from there.
    pub weight: Option<u32>,
    /// How long dedupe keys and request ids are remembered. Of a namespace alone: keys are the namespace's.
    pub dedupe_window: Option<Duration>,
}

impl TopicSettings {
    /// Nothing is set.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The largest weight.
    pub const WEIGHT_MAX: u32 = 100;

    /// The weight. Not set: 1.
    pub fn weight(&self) -> u32 {
        self.weight.unwrap_or(1)
    }

    /// These, and where something is absent that of a pattern.
    pub fn or_of_pattern(self, wider: Self) -> Self {
        Self { weight: self.weight.or(wider.weight), ..self.or(wider) }
    }

    /// These, and where something is absent that of the namespace, or of the node.
    pub fn or(self, wider: Self) -> Self {
        Self {
            default_lease: self.default_lease.or(wider.default_lease),
            default_max_attempts: self.default_max_attempts.or(wider.default_max_attempts),
            retry_delay: self.retry_delay.or(wider.retry_delay),
            dead_letter_retention: self.dead_letter_retention.or(wider.dead_letter_retention),
            weight: self.weight,
            dedupe_window: self.dedupe_window.or(wider.dedupe_window),
        }
    }
}

/// Settings as the catalog has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsRow {
    /// The topic, or with `*` behind it all that begin so. An empty one: the namespace itself.
    pub name: TopicName,
    /// Grows with each change of any policy or settings.
    pub version: u64,
    /// The settings. All absent: they were removed.
    pub settings: TopicSettings,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_scope_goes_first_field_by_field() {
        let second = Duration::from_secs;
        let topic = TopicSettings {
            default_lease: Some(second(1)),
            retry_delay: Some(Duration::ZERO),
            ..TopicSettings::default()
        };
        let namespace = TopicSettings {
            default_lease: Some(second(2)),
            default_max_attempts: Some(3),
            retry_delay: Some(second(4)),
            dead_letter_retention: Some(second(5)),
            weight: Some(7),
            dedupe_window: Some(second(6)),
        };
        let both = topic.or(namespace);
        assert_eq!((both.default_lease, both.default_max_attempts), (Some(second(1)), Some(3)));
        assert_eq!(both.retry_delay, Some(Duration::ZERO), "zero is a value, too");
        assert_eq!((both.dead_letter_retention, both.dedupe_window), (Some(second(5)), Some(second(6))));
        assert_eq!(both.weight(), 1, "a namespace's weight is not that of its topics");
        assert_eq!(TopicSettings::default().or(namespace), TopicSettings { weight: None, ..namespace });
        assert_eq!(topic.or_of_pattern(namespace), TopicSettings { weight: Some(7), ..both });
        assert!(TopicSettings::default().is_nothing() && !topic.is_nothing());
    }
}
