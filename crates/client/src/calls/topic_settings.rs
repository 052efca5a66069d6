//! Settings of topics, and how changes are made.

use forebay_proto::v1;
use forebay_types::TopicSettings;

use crate::durations;

/// How a change is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeNote {
    /// Why, for the log of the server. At most 1 KiB.
    pub reason: String,
    /// Only check and answer.
    pub dry_run: bool,
}

/// Settings after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsReport {
    /// Those that were set.
    pub settings: TopicSettings,
    /// Their version. 0: there are none.
    pub version: u64,
    /// What counts: these, and what the wider scopes have in place of absent ones.
    pub effective: TopicSettings,
}

/// Settings as requests have them.
pub(super) fn to_topic(settings: TopicSettings) -> v1::TopicSettings {
    v1::TopicSettings {
        default_lease: settings.default_lease.map(durations::to_proto),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(durations::to_proto),
        dead_letter_retention: settings.dead_letter_retention.map(durations::to_proto),
    }
}

/// Settings as answers have them.
pub(super) fn of_topic(settings: v1::TopicSettings) -> TopicSettings {
    TopicSettings {
        default_lease: settings.default_lease.map(durations::from_proto),
        default_max_attempts: Some(settings.default_max_attempts).filter(|number| *number > 0),
        retry_delay: settings.retry_delay.map(durations::from_proto),
        dead_letter_retention: settings.dead_letter_retention.map(durations::from_proto),
        dedupe_window: None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn settings_survive_a_round_trip() {
        let settings = TopicSettings {
            default_lease: Some(Duration::from_millis(1_500)),
            retry_delay: Some(Duration::ZERO),
            ..TopicSettings::default()
        };
        assert_eq!(of_topic(to_topic(settings)), settings);
        assert_eq!(to_topic(TopicSettings::default()), v1::TopicSettings::default());
    }
}
