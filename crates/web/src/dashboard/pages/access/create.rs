//! The form that makes a token.

use forebay_access::Scopes;
use maud::{Markup, html};

use super::super::super::{act, asked::PageRequest};

/// Makes it. Whoever sees the page may make tokens, with rights that it has itself.
pub fn form(asked: &PageRequest) -> Markup {
    let namespace = if asked.is_about_all() { "billing" } else { asked.namespace() };
    let inside = html! {
        label {
            "Who gets it "
            input name="name" required maxlength="200" placeholder="mailer";
        }
        label {
            "Rights, as NAMESPACES:RIGHTS with spaces between several "
            input name="grants" required maxlength="4096" size="50"
                placeholder=(format!("{namespace}:produce,consume"));
        }
        label { "Ends after " input name="ends" maxlength="40" placeholder="365d"; }
        label { "Why " input name="reason" maxlength="1000"; }
        button { "Make a token" }
        p.dim {
            "The rights are " (Scopes::all().to_string().replace(',', ", ")) "; all stands for each. "
            "Namespaces are a name, the beginning of names and *, or * for all."
        }
        p.dim { "Nobody gives a right that it does not have. The token is shown once, on the next page." }
    };
    html! {
        h2 { "A new token" }
        div.form { (act::form(asked, "create-token", &[("ns", asked.namespace())], inside)) }
    }
}
