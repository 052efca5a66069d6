//! The form that cancels items, and the way back.

use maud::{Markup, html};

use super::super::super::{act, asked::PageRequest, texts::counted};

/// Cancels the items whose ids are among these fields.
pub(crate) fn cancel_form(asked: &PageRequest, fields: &[(&str, &str)], back: &str) -> Markup {
    let items = fields.iter().filter(|(name, _)| *name == "id").count();
    let inside = html! {
        label { "Reason, for the audit log " input name="reason" maxlength="500" size="40"; }
        div.actions {
            a.button href=(back) autofocus { "Go back" }
            button.danger { "Cancel " (counted(items as u64, "item")) }
        }
    };
    html! { div.form { (act::form(asked, "cancel-item", fields, inside)) } }
}
