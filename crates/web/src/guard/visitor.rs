//! A visitor of a page, as handlers know it.

use std::sync::Arc;

use forebay_access::Kind;
use forebay_edge::access::AuthenticatedCaller;
use maud::{Markup, html};
use sha2::{Digest as _, Sha256};

use super::{
    cookies::SessionId,
    forms::{FormKey, SIGNATURE},
};

/// A visitor of a page.
#[derive(Clone)]
pub struct Visitor {
    /// Its identity. `None`: nobody is known, and the page needs nobody.
    pub who: Option<AuthenticatedCaller>,
    /// The session by which that is known.
    pub session: Option<SessionId>,
    /// Signs the forms of the page.
    pub(super) forms: Arc<FormKey>,
}

impl Visitor {
    /// The value to which the signatures of its forms are bound: its session, or its identity.
    pub(crate) fn bound(&self) -> [u8; 32] {
        match (&self.session, &self.who) {
            (Some(session), _) => *session,
            (None, Some(who)) => {
                let kind = match who.identity.kind {
                    Kind::Anyone => b'a',
                    Kind::Token => b't',
                    Kind::Certificate => b'c',
                };
                let named = Sha256::new_with_prefix([kind]).chain_update(&who.identity.id);
                named.finalize().into()
            }
            (None, None) => [0; 32],
        }
    }

    /// The field that a form needs which is sent to this path: without it the form is refused.
    pub fn signature(&self, path: &str) -> Markup {
        hidden(SIGNATURE, &self.forms.sign(&self.bound(), path))
    }

    /// The name of the visitor, and the way out. Empty without a session.
    pub(crate) fn session_line(&self) -> Markup {
        let (Some(who), Some(_)) = (&self.who, &self.session) else { return html! {} };
        let identity = &who.identity;
        let name = if identity.name.is_empty() { &identity.id } else { &identity.name };
        html! {
            form.session method="post" action="logout" {
                (self.signature("/logout")) "logged in as " (name) " " button { "log out" }
            }
        }
    }
}

/// A field of a form that nobody sees.
pub(super) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}
