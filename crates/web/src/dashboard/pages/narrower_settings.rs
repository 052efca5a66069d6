//! The topics and patterns of a namespace that have settings of their own, and the way to another one's.

use forebay_proto::v1::{ExportSettingsRequest, SettingsEntry};
use maud::{Markup, html};
use tonic::Status;

use super::{
    super::{
        asked::PageRequest,
        bulk::word,
        links::link,
        table::{self, Head},
    },
    overview::unread,
    settings::set_values,
};

/// Names of the list.
const SHOWN_MAX: u32 = 100;

/// The list, and a form that leads to the settings of a topic or a pattern.
pub async fn show(asked: &PageRequest) -> Markup {
    let namespace = asked.namespace();
    // The namespace is among them.
    let page_size = SHOWN_MAX + 1;
    let request = ExportSettingsRequest {
        namespace: namespace.to_owned(),
        page_size,
        ..ExportSettingsRequest::default()
    };
    let found = asked.ask(request).await;
    html! {
        h2 { "Settings of topics" }
        (list(namespace, found.map(|found| (found.entries, !found.next_page_token.is_empty()))))
        form.controls action="topic" {
            input type="hidden" name="ns" value=(namespace);
            input type="hidden" name="tab" value="settings";
            label {
                "A topic, or all that begin alike "
                input name="name" required maxlength="200" placeholder="calls/*";
            }
            button { "Show its settings" }
        }
    }
}

/// The entries, and whether there are more.
fn list(namespace: &str, found: Result<(Vec<SettingsEntry>, bool), Status>) -> Markup {
    let (mut entries, is_cut) = match found {
        Ok(found) => found,
        Err(status) => return unread("The settings of topics", &status),
    };
    entries.retain(|entry| !entry.topic.is_empty());
    html! {
        @if entries.is_empty() {
            p.none { "No topic has settings of its own." }
        } @else {
            (table::plain(
                html! { (Head::words("Topic")) (Head::words("Set")) },
                html! { @for entry in &entries { (row(namespace, entry)) } },
            ))
        }
        @if is_cut {
            p.none {
                "There are more: " code { "forebay settings export --namespace " (word(namespace)) }
            }
        }
    }
}

fn row(namespace: &str, entry: &SettingsEntry) -> Markup {
    let fields = [("ns", namespace), ("name", &entry.topic), ("tab", "settings")];
    html! {
        tr {
            td.l { a href=(link("topic", &fields)) { bdi { (entry.topic) } } }
            td.l { (set_values(&entry.settings.unwrap_or_default())) }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::NamespaceSettings;

    use super::*;

    fn entry(topic: &str, attempts: u32, weight: u32) -> SettingsEntry {
        let set =
            NamespaceSettings { default_max_attempts: attempts, weight, ..NamespaceSettings::default() };
        SettingsEntry { namespace: "a b".to_owned(), topic: topic.to_owned(), settings: Some(set) }
    }

    #[test]
    fn each_topic_and_pattern_leads_to_its_settings() {
        let entries = vec![entry("", 9, 0), entry("calls/*", 3, 5)];
        let shown = list("a b", Ok((entries, true))).into_string();
        assert!(shown.contains("topic?ns=a+b&amp;name=calls%2F*&amp;tab=settings"), "{shown}");
        assert!(shown.contains("Failures until an item is dead: 3 · Weight of its turns: 5"), "{shown}");
        assert!(
            !shown.contains(": 9") && shown.contains("forebay settings export --namespace 'a b'"),
            "{shown}"
        );
        let none = list("a", Ok((vec![entry("", 9, 0)], false))).into_string();
        assert!(none.contains("No topic has settings") && !none.contains("more"), "{none}");
        let unread = list("a", Err(Status::unavailable("busy"))).into_string();
        assert!(unread.contains("The settings of topics could not be read. Busy"), "{unread}");
    }
}
