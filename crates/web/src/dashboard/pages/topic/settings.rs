//! Effective settings of a topic, and from where each comes.

use forebay_access::Scope;
use forebay_proto::v1::GetTopicResponse;
use forebay_types::is_prefix;
use maud::{Markup, html};

use super::{
    super::{
        super::{act, asked::PageRequest, bulk::word, links::link},
        settings::{fields, pairs},
    },
    place::Place,
};

/// The effective settings, the form that changes them, and the command that does the same.
pub fn settings(asked: &PageRequest, place: &Place<'_>, found: &GetTopicResponse) -> Markup {
    let topic = found.topic.clone().unwrap_or_default();
    let own = topic.settings.unwrap_or_default().into();
    let effective = found.effective_settings.unwrap_or_default().into();
    let command = format!("forebay topic put {} --namespace {}", word(place.name), word(place.namespace));
    let version = topic.settings_version.to_string();
    let which = if is_prefix(place.name) { "these topics" } else { "this topic" };
    let hidden = [("ns", place.namespace), ("name", place.name), ("version", &version)];
    html! {
        @if found.effective_settings.is_some() { (pairs(&own, &effective, topic.settings_version)) }
        p {
            "What is inherited comes from a pattern like " code { "calls/*" } " that covers it, from "
            a href=(link("namespace", &[("ns", place.namespace)])) {
                "the settings of " bdi { (place.namespace) }
            }
            ", or from the configuration of the node."
        }
        @if asked.may(Scope::Admin, place.namespace) {
            details.form {
                summary { "Change the settings of " (which) }
                (act::form(asked, "put-topic", &hidden, fields(&own, false)))
            }
        }
        p { "To change a setting with the command line, and to inherit it again:" }
        pre {
            (command) " --retry-delay 10s --reason WHY\n"
            (command) " --retry-delay inherit"
        }
        p.none {
            "The other settings are " code { "--default-lease" } ", " code { "--default-max-attempts" } ", "
            code { "--dead-letter-retention" } " and " code { "--weight" } "."
        }
    }
}
