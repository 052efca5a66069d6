//! What counts for a topic, and from where it has that.

use forebay_access::Scope;
use forebay_proto::v1::{GetTopicResponse, Topic, TopicSettings};
use maud::{Markup, html};

use super::{
    super::super::{
        act,
        asked::Asked,
        links,
        texts::{duration, span},
    },
    place::Place,
};

/// What counts, the form that changes it, and the command that does the same.
pub fn settings(asked: &Asked, place: &Place<'_>, found: &GetTopicResponse) -> Markup {
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
        @if asked.may(Scope::Admin, place.namespace) { (form(asked, place, &topic)) }
        p { "To change a setting with the command line, and to inherit it again:" }
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

/// All settings that are set here. Without a catalog nothing keeps them, and the call says so.
fn form(asked: &Asked, place: &Place<'_>, topic: &Topic) -> Markup {
    let own = topic.settings.unwrap_or_default();
    let [(lease, _), (attempts, _), (retry, _), (kept, _)] = values(&own);
    let max_attempts = Some(own.default_max_attempts).filter(|number| *number > 0);
    let version = topic.settings_version.to_string();
    let fields = [("ns", place.namespace), ("name", place.name), ("version", &version)];
    let inside = html! {
        (span_field(lease, "lease", own.default_lease, "30s"))
        label { (attempts) " " input name="attempts" type="number" min="1" max="1000" value=[max_attempts]; }
        (span_field(retry, "retry", own.retry_delay, "10s, or 0s: none"))
        (span_field(kept, "kept", own.dead_letter_retention, "14d, or 0s: for ever"))
        label { "Why " input name="reason" maxlength="1000"; }
        button { "Change the settings" }
        p.dim { "What is empty is inherited." }
    };
    html! {
        details.form {
            summary { "Change the settings of this topic" }
            (act::form(asked, "put-topic", &fields, inside))
        }
    }
}

/// A field for a span, with what is set.
fn span_field(label: &str, name: &str, set: Option<prost_types::Duration>, example: &str) -> Markup {
    let set = set.map(|time| humantime::format_duration(duration(time)).to_string());
    html! { label { (label) " " input name=(name) value=[set] placeholder=(example) maxlength="40"; } }
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
