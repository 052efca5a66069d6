//! Settings as pages show them and as forms have them: those of a topic, and those of a namespace, which has
//! one more.

use forebay_proto::{time::from_duration, v1::NamespaceSettings};
use maud::{Markup, html};

use super::super::texts::span;

/// The effective settings, and from where each comes. `own`: the ones that are set here.
pub fn pairs(own: &NamespaceSettings, effective: &NamespaceSettings, version: u64) -> Markup {
    let shown = |(at, _): &(usize, _)| *at < WINDOW || effective.dedupe_window.is_some();
    html! {
        dl.pairs {
            @for (at, (name, value)) in values(effective).into_iter().enumerate().filter(shown) {
                dt { (name) }
                dd {
                    (value.as_deref().unwrap_or("–"))
                    span.none { (if values(own)[at].1.is_some() { " (set here)" } else { " (inherited)" }) }
                }
            }
            dt { "Version" }
            dd { (version) }
        }
    }
}

/// The settings that are set here, in one line.
pub fn set_values(own: &NamespaceSettings) -> String {
    let set = values(own).into_iter().filter_map(|(name, value)| Some(format!("{name}: {}", value?)));
    set.collect::<Vec<_>>().join(" · ")
}

/// The fields of the form, with what is set. `window`: also the one of a namespace alone.
pub fn fields(own: &NamespaceSettings, window: bool) -> Markup {
    let [(lease, _), (attempts, _), (retry, _), (kept, _), (weight, _), (remembered, _)] = values(own);
    let set = |number: u32| Some(number).filter(|number| *number > 0);
    html! {
        (span_field(lease, "lease", own.default_lease, "30s"))
        label {
            (attempts) " "
            input name="attempts" type="number" min="1" max="1000" value=[set(own.default_max_attempts)];
        }
        (span_field(retry, "retry", own.retry_delay, "10s, or 0s: none"))
        (span_field(kept, "kept", own.dead_letter_retention, "14d, or 0s: for ever"))
        label { (weight) " " input name="weight" type="number" min="1" max="100" value=[set(own.weight)]; }
        @if window { (span_field(remembered, "window", own.dedupe_window, "10m")) }
        label { "Why " input name="reason" maxlength="1000"; }
        button { "Change the settings" }
        p.dim { "What is empty is inherited." }
    }
}

/// A field for a span, with what is set.
fn span_field(label: &str, name: &str, set: Option<prost_types::Duration>, example: &str) -> Markup {
    let set = set.map(|time| humantime::format_duration(from_duration(time)).to_string());
    html! { label { (label) " " input name=(name) value=[set] placeholder=(example) maxlength="40"; } }
}

/// The place of the dedupe window among the values.
const WINDOW: usize = 5;

/// The settings for people. `None`: not set.
fn values(settings: &NamespaceSettings) -> [(&'static str, Option<String>); 6] {
    let number = |set: u32| Some(set).filter(|number| *number > 0).map(|number| number.to_string());
    [
        ("Lease of items that name none", settings.default_lease.map(|time| span(from_duration(time)))),
        ("Failures until an item is dead", number(settings.default_max_attempts)),
        ("Wait after a failure", settings.retry_delay.map(|time| unless_zero("none", time))),
        ("Dead letters are kept", settings.dead_letter_retention.map(kept)),
        ("Weight of its turns", number(settings.weight)),
        ("Dedupe keys are remembered", settings.dedupe_window.map(|time| span(from_duration(time)))),
    ]
}

/// How long dead letters are kept.
pub fn kept(time: prost_types::Duration) -> String {
    unless_zero("for ever", time)
}

fn unless_zero(zero: &str, time: prost_types::Duration) -> String {
    let time = from_duration(time);
    if time.is_zero() { zero.to_owned() } else { span(time) }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::TopicSettings;

    use super::*;

    const ZERO: Option<prost_types::Duration> = Some(prost_types::Duration { seconds: 0, nanos: 0 });

    #[test]
    fn what_is_not_set_is_told_from_zero() {
        let set = NamespaceSettings {
            retry_delay: ZERO,
            dead_letter_retention: ZERO,
            ..NamespaceSettings::default()
        };
        let texts = values(&set).map(|(_, value)| value.unwrap_or_default());
        assert_eq!(texts, ["", "", "none", "for ever", "", ""]);
    }

    #[test]
    fn a_topic_has_no_dedupe_window() {
        let topic = TopicSettings { retry_delay: ZERO, ..TopicSettings::default() }.into();
        let shown = pairs(&topic, &topic, 7).into_string() + &fields(&topic, false).into_string();
        assert!(
            !shown.contains("Dedupe") && shown.contains("none<span class=\"none\"> (set here)"),
            "{shown}"
        );
        let window = Some(prost_types::Duration { seconds: 600, nanos: 0 });
        let namespace = NamespaceSettings { dedupe_window: window, ..topic };
        let shown = pairs(&topic, &namespace, 7).into_string() + &fields(&namespace, true).into_string();
        assert!(shown.contains("10 min<span class=\"none\"> (inherited)"), "{shown}");
        assert!(shown.contains("name=\"window\" value=\"10m\""), "{shown}");
    }
}
