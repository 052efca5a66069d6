//! Links from dead letters to a question, and whether the payloads of dead letters are shown.

use forebay_access::Scope;
use maud::Markup;

use super::super::super::{act, asked::PageRequest, bulk, links::link};

/// A link to the question before something is done with the dead letters of a topic that pass a filter.
pub fn question(asked: &PageRequest, action: &str, topic: &str, filter: &str, text: &str) -> Markup {
    let namespace = asked.namespace();
    let fields = [("action", action), ("ns", namespace), ("name", topic), ("filter", filter)];
    let class = if bulk::kind_of(action).is_some_and(bulk::destroys) { "danger" } else { "" };
    act::question(asked, namespace, &link("confirm", &fields), class, text)
}

/// Whether payloads are shown: to those who may see them, and once for each page.
pub(crate) fn shows_payloads(asked: &PageRequest) -> bool {
    asked.may(Scope::Inspect, asked.namespace()) && !asked.is_followed()
}
