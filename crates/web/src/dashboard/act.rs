//! Parts that the forms of pages have in common. A form makes one call, and leads to a page.

use axum::response::{IntoResponse as _, Response};
use forebay_access::Scope;
use maud::{Markup, html};

use super::{asked::PageRequest, trouble::Trouble};
use crate::guard::leads_to;

/// A form of an act. `act`: its path, without the slash. `fields`: those that nobody sees. `inside`: the
/// rest, with the button.
pub fn form(asked: &PageRequest, act: &str, fields: &[(&str, &str)], inside: Markup) -> Markup {
    html! {
        form method="post" action=(act) {
            (asked.visitor.signature(&format!("/{act}")))
            @for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            (inside)
        }
    }
}

/// A form that is one button, for those who have the right to it.
pub fn button(asked: &PageRequest, scope: Scope, act: &str, fields: &[(&str, &str)], text: &str) -> Markup {
    let namespace = fields.iter().find(|(name, _)| *name == "ns").map_or("", |(_, value)| *value);
    if !asked.may(scope, namespace) {
        return html! {};
    }
    form(asked, act, fields, html! { button { (text) } })
}

/// A link that looks like a button, to a page with a question.
pub fn question(asked: &PageRequest, namespace: &str, address: &str, class: &str, text: &str) -> Markup {
    if !asked.may(Scope::Operate, namespace) {
        return html! {};
    }
    html! { a.button.(class) href=(address) { (text) } }
}

/// After an act: the page that shows what became of it, or why it was not done.
pub fn lead(done: Result<String, Trouble>) -> Response {
    match done {
        Ok(address) => leads_to(&address, []),
        Err(trouble) => trouble.into_response(),
    }
}
