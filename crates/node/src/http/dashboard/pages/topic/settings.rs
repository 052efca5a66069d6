//! What counts for a topic, and from where it has that.

use forebay_proto::v1::{GetTopicResponse, TopicSettings};
use maud::{Markup, html};

use super::{
    super::super::{
        links,
        texts::{duration, span},
    },
    place::Place,
};

/// What counts, and the command that changes it.
pub fn settings(place: &Place<'_>, found: &GetTopicResponse) -> Markup {
    let topic = found.topic.clone().unwrap_or_default();
    let own = topic.settings.unwrap_or_default();
    let effective = found.effective_settings.unwrap_or_default();
    let command = format!("forebay topic put {} --namespace {}", place.name, place.namespace);
    html! {
        dl.pairs {
            @for ((name, value), (_, own)) in values(&effective).into_iter().zip(values(&own)) {
                dt { (name) }
                dd {
                    (value.as_deref().unwrap_or("–"))
                    span.none { (if own.is_some() { " (set here)" } else { " (inherited)" }) }
                }
            }
            dt { "Version" }
            dd { (topic.settings_version) }
        }
        p {
            "What is inherited comes from " (links::namespace(place.namespace))
            ", or from the configuration of the node."
        }
        p { "To change a setting, and to inherit it again:" }
        pre {
            (command) " --retry-delay 10s --reason WHY\n"
            (command) " --retry-delay inherit"
        }
        p.none {
            "The other settings are " code { "--default-lease" } ", " code { "--default-max-attempts" }
            " and " code { "--dead-letter-retention" } "."
        }
    }
}

/// The settings for people. `None`: not set.
fn values(settings: &TopicSettings) -> [(&'static str, Option<String>); 4] {
    let max_attempts = Some(settings.default_max_attempts).filter(|number| *number > 0);
    [
        ("Lease of items that name none", settings.default_lease.map(|time| span(duration(time)))),
        ("Failures until an item is dead", max_attempts.map(|number| number.to_string())),
        ("Wait after a failure", settings.retry_delay.map(|time| unless_zero("none", time))),
        ("Dead letters are kept", settings.dead_letter_retention.map(kept)),
    ]
}

/// How long dead letters are kept.
pub fn kept(time: prost_types::Duration) -> String {
    unless_zero("for ever", time)
}

fn unless_zero(zero: &str, time: prost_types::Duration) -> String {
    let time = duration(time);
    if time.is_zero() { zero.to_owned() } else { span(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_told_from_zero() {
        let zero = Some(prost_types::Duration { seconds: 0, nanos: 0 });
        let set =
            TopicSettings { retry_delay: zero, dead_letter_retention: zero, ..TopicSettings::default() };
        let texts = values(&set).map(|(_, value)| value.unwrap_or_default());
        assert_eq!(texts, ["", "", "none", "for ever"]);
    }
}
