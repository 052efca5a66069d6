//! Settings of topics and namespaces: as requests have them, as answers have them, and which of them count.

use std::time::Duration;

use forebay_edge::rpc::fields;
use forebay_engine::Settings;
use forebay_proto::{time::to_duration, v1};
use forebay_types::{Limits, Refusal, TopicName, TopicSettings};

use super::context::Admin;

/// The longest retention of dead letters but for ever: ten years.
const RETENTION_MAX: Duration = Duration::from_secs(3_660 * 86_400);
/// The shortest window of dedupe keys.
const WINDOW_MIN: Duration = Duration::from_secs(1);
/// Bytes that settings take in an answer.
pub(crate) const SETTINGS_BYTES: usize = 80;

/// The settings that a request wants for a topic.
pub fn of_topic(limits: &Limits, given: Option<&v1::TopicSettings>) -> Result<TopicSettings, Refusal> {
    let Some(given) = given else { return Ok(TopicSettings::default()) };
    Ok(TopicSettings {
        default_lease: fields::lease(limits, "settings.default_lease", given.default_lease.as_ref())?,
        default_max_attempts: number(
            "settings.default_max_attempts",
            given.default_max_attempts,
            limits.attempts_max,
        )?,
        retry_delay: delay(limits, given.retry_delay.as_ref())?,
        dead_letter_retention: retention(given.dead_letter_retention.as_ref())?,
        weight: number("settings.weight", given.weight, TopicSettings::WEIGHT_MAX)?,
        dedupe_window: None,
    })
}

/// The settings that a request wants for a namespace.
pub fn of_namespace(
    node: &Settings,
    limits: &Limits,
    given: Option<&v1::NamespaceSettings>,
) -> Result<TopicSettings, Refusal> {
    let Some(given) = given else { return Ok(TopicSettings::default()) };
    let dedupe_window = window(node, given.dedupe_window.as_ref())?;
    Ok(TopicSettings { dedupe_window, ..of_topic(limits, Some(&given.for_topic()))? })
}

/// 0: not set.
fn number(path: &'static str, given: u32, max: u32) -> Result<Option<u32>, Refusal> {
    match given {
        0 => Ok(None),
        number if number <= max => Ok(Some(number)),
        number => Err(Refusal::field(path, format!("is {number}; it must be at most {max}"))),
    }
}

fn delay(limits: &Limits, given: Option<&prost_types::Duration>) -> Result<Option<Duration>, Refusal> {
    given.map(|given| fields::delay(limits, "settings.retry_delay", given)).transpose()
}

fn retention(given: Option<&prost_types::Duration>) -> Result<Option<Duration>, Refusal> {
    let path = "settings.dead_letter_retention";
    let Some(span) = given.map(|given| fields::duration(path, given)).transpose()? else { return Ok(None) };
    if span > RETENTION_MAX {
        return Err(Refusal::field(path, "must be at most 3660 days; 0 keeps dead letters for ever"));
    }
    Ok(Some(span))
}

/// Keys are kept for the longest window of the configuration, so a longer one would not hold what it says.
fn window(node: &Settings, given: Option<&prost_types::Duration>) -> Result<Option<Duration>, Refusal> {
    let path = "settings.dedupe_window";
    let Some(span) = given.map(|given| fields::duration(path, given)).transpose()? else { return Ok(None) };
    let longest = node.longest_dedupe_window();
    if span < WINDOW_MIN || span > longest {
        let message = format!(
            "is {span:?}; it must be from {WINDOW_MIN:?} to {longest:?}, the longest window of the node's \
             configuration"
        );
        return Err(Refusal::field(path, message));
    }
    Ok(Some(span))
}

/// Settings of a topic as answers have them.
pub(crate) fn topic_message(settings: &TopicSettings) -> v1::TopicSettings {
    v1::TopicSettings {
        default_lease: settings.default_lease.map(to_duration),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(to_duration),
        dead_letter_retention: settings.dead_letter_retention.map(to_duration),
        weight: settings.weight.unwrap_or(0),
    }
}

/// Settings of a namespace as answers have them.
pub(crate) fn namespace_message(settings: &TopicSettings) -> v1::NamespaceSettings {
    v1::NamespaceSettings {
        dedupe_window: settings.dedupe_window.map(to_duration),
        dead_letter_retention: settings.dead_letter_retention.map(to_duration),
        default_lease: settings.default_lease.map(to_duration),
        default_max_attempts: settings.default_max_attempts.unwrap_or(0),
        retry_delay: settings.retry_delay.map(to_duration),
        weight: settings.weight.unwrap_or(0),
    }
}

/// Settings that count for a topic; for the topics of a pattern, or with an empty topic for those of its
/// namespace, that have no others, if these are its own.
pub async fn effective(
    admin: &Admin,
    name: &TopicName,
    own: TopicSettings,
) -> Result<TopicSettings, Refusal> {
    let node = admin.settings.defaults_of(&name.namespace);
    let wanted = admin.gather.policies(name.namespace.clone(), vec![name.clone()]).await?;
    let inherited = wanted.first().map(|wanted| wanted.inherited).unwrap_or_default();
    let counts = own.or_of_pattern(inherited);
    Ok(TopicSettings { weight: Some(counts.weight()), ..counts.or(node) })
}

#[cfg(test)]
mod tests {
    use forebay_types::Reason;

    use super::*;

    fn seconds(seconds: i64) -> Option<prost_types::Duration> {
        Some(prost_types::Duration { seconds, nanos: 0 })
    }

    fn topic(given: v1::TopicSettings) -> Result<TopicSettings, Refusal> {
        of_topic(&Limits::default(), Some(&given))
    }

    fn namespace(given: v1::NamespaceSettings) -> Result<TopicSettings, Refusal> {
        of_namespace(&Settings::default(), &Limits::default(), Some(&given))
    }

    #[test]
    fn what_is_absent_is_not_set_and_the_rest_arrives() {
        assert_eq!(of_topic(&Limits::default(), None).unwrap(), TopicSettings::default());
        assert_eq!(topic(v1::TopicSettings::default()).unwrap(), TopicSettings::default());
        let given = v1::NamespaceSettings {
            dedupe_window: seconds(60),
            dead_letter_retention: seconds(0),
            default_lease: seconds(5),
            default_max_attempts: 3,
            retry_delay: seconds(0),
            weight: 100,
        };
        let set = namespace(given).unwrap();
        assert_eq!(
            (set.retry_delay, set.dead_letter_retention),
            (Some(Duration::ZERO), Some(Duration::ZERO))
        );
        assert_eq!((set.default_lease, set.default_max_attempts), (Some(Duration::from_secs(5)), Some(3)));
        assert_eq!(namespace_message(&set), given, "and back");
        let of_topic = v1::TopicSettings {
            default_lease: seconds(7),
            default_max_attempts: 0,
            retry_delay: seconds(1),
            dead_letter_retention: None,
            weight: 3,
        };
        assert_eq!(topic_message(&topic(of_topic).unwrap()), of_topic);
    }

    #[test]
    fn each_wrong_value_is_named() {
        let none = v1::TopicSettings::default();
        for (given, field) in [
            (v1::TopicSettings { default_lease: seconds(0), ..none }, "default_lease"),
            (v1::TopicSettings { default_lease: seconds(43_201), ..none }, "default_lease"),
            (v1::TopicSettings { default_max_attempts: 1_001, ..none }, "default_max_attempts"),
            (v1::TopicSettings { weight: 101, ..none }, "weight"),
            (v1::TopicSettings { retry_delay: seconds(-1), ..none }, "retry_delay"),
            (v1::TopicSettings { retry_delay: seconds(367 * 86_400), ..none }, "retry_delay"),
            (v1::TopicSettings { dead_letter_retention: seconds(-1), ..none }, "dead_letter_retention"),
            (
                v1::TopicSettings { dead_letter_retention: seconds(3_661 * 86_400), ..none },
                "dead_letter_retention",
            ),
        ] {
            let refusal = topic(given).unwrap_err();
            assert_eq!(refusal.reason, Reason::InvalidField);
            assert_eq!(refusal.field.as_deref(), Some(&*format!("settings.{field}")));
        }
        for window in [0, 601] {
            let given =
                v1::NamespaceSettings { dedupe_window: seconds(window), ..v1::NamespaceSettings::default() };
            assert_eq!(namespace(given).unwrap_err().field.as_deref(), Some("settings.dedupe_window"));
        }
    }
}
