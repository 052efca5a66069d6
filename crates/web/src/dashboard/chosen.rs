//! Rows of a list that are chosen by their boxes, and what is done with them: a form that leads to the page
//! with the question, and changes nothing itself.

use forebay_access::Scope;
use maud::{Markup, html};

use super::asked::PageRequest;

/// The form to which the boxes of a list belong.
const FORM: &str = "chosen";
/// The field that tells a form of which no box is marked from a link about a whole topic.
const IS_CHOSEN: &str = "chosen";
/// The field of each box, with the id of its item.
const ID: &str = "id";

/// An action on chosen rows: its name on the page with the question, and the text of its button.
pub type Action = (&'static str, &'static str);
/// With items that wait, or are leased.
pub(crate) const OF_ITEMS: &[Action] = &[("cancel", "Cancel…")];
/// With dead letters.
pub(crate) const OF_DEAD: &[Action] = &[("redrive", "Redrive…"), ("delete-dead", "Delete…")];

/// Whether whoever asks may do anything with rows of a list.
pub(crate) fn may_choose(asked: &PageRequest, namespace: &str) -> bool {
    asked.may(Scope::Operate, namespace)
}

/// The bar with what can be done. The script says in it how many are chosen.
pub fn bar(asked: &PageRequest, [namespace, topic]: [&str; 2], actions: &[Action]) -> Markup {
    if !may_choose(asked, namespace) {
        return html! {};
    }
    html! {
        form.actions #(FORM) action="confirm" {
            @for (name, value) in [("ns", namespace), ("name", topic), (IS_CHOSEN, "1")] {
                input type="hidden" name=(name) value=(value);
            }
            span #count { "Chosen rows:" }
            @for (action, text) in actions {
                button.danger[*action != "redrive"] name="action" value=(action) { (text) }
            }
        }
    }
}

/// The head of the column of boxes.
pub fn head() -> Markup {
    html! { th.pick scope="col" aria-label="Choose" {} }
}

/// The box of a row.
pub fn cell(item: &str) -> Markup {
    html! {
        td.pick {
            input type="checkbox" name=(ID) value=(item) form=(FORM) aria-label=(format!("Choose {item}"));
        }
    }
}

/// The items that are chosen. `None`: the page is about others.
pub fn items(asked: &PageRequest) -> Option<Vec<&str>> {
    (!asked.fields.get(IS_CHOSEN).is_empty()).then(|| asked.fields.all(ID))
}
