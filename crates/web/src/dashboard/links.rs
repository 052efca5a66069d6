//! Links between pages. They are relative, so that they hold behind any prefix of a proxy, and names are in
//! the query, since topics have slashes.

use maud::{Markup, html};

use super::asked::PageRequest;

/// An address of a page with these fields. Empty ones are left out.
pub fn link(page: &str, fields: &[(&str, &str)]) -> String {
    let mut address = page.to_owned();
    if fields.iter().any(|(_, value)| !value.is_empty()) {
        address.push('?');
    }
    let from = address.len();
    let mut query = form_urlencoded::Serializer::for_suffix(address, from);
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A topic, as a link to its page.
pub fn topic(namespace: &str, name: &str) -> Markup {
    html! { a href=(link("topic", &[("ns", namespace), ("name", name)])) { bdi { (name) } } }
}

/// A namespace, as a link to its topics.
pub fn namespace(name: &str) -> Markup {
    html! { a href=(link("topics", &[("ns", name)])) { bdi { (name) } } }
}

/// An item, as a link to its page.
pub fn item(namespace: &str, id: &str) -> Markup {
    html! { a.id href=(link("item", &[("ns", namespace), ("id", id)])) { (id) } }
}

/// The id of an operation, as a link to its page.
pub fn operation(namespace: &str, id: &str) -> Markup {
    html! { a.id href=(link("operation", &[("ns", namespace), ("id", id)])) { (id) } }
}

/// The long history of a topic, of a namespace, or of all of them, where the configuration names a Grafana.
pub fn grafana(asked: &PageRequest, topic: &str) -> Option<Markup> {
    let namespace = if asked.is_about_all() { "" } else { asked.namespace() };
    let address = asked.info.grafana.as_ref()?.link(namespace, topic);
    Some(html! { a href=(address) rel="noreferrer" { "Long history in Grafana" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_and_empty_fields_left_out() {
        assert_eq!(link("topics", &[("ns", ""), ("q", "")]), "topics");
        assert_eq!(link("topic", &[("ns", "a"), ("name", "x/y &z")]), "topic?ns=a&name=x%2Fy+%26z");
        let shown = topic("ns", "<b>").into_string();
        assert_eq!(shown, "<a href=\"topic?ns=ns&amp;name=%3Cb%3E\"><bdi>&lt;b&gt;</bdi></a>");
    }
}
