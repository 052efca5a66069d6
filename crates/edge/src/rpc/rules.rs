//! Rules that requests are checked against.

use std::collections::BTreeSet;

pub use forebay_types::ALL_NAMESPACES;
use forebay_types::{Limits, Namespace, Reason, Refusal};

use super::fields;

/// Rules that every request is checked against.
#[derive(Debug, Clone, Default)]
pub struct RequestRules {
    /// Sizes and counts that one request may have.
    pub limits: Limits,
    /// The only allowed namespaces; `None`: a namespace is created by its first item.
    pub namespaces: Option<BTreeSet<String>>,
}

impl RequestRules {
    /// The namespace of a call that may be about all of them.
    pub fn namespace_or_all(&self, text: &str) -> Result<Namespace, Refusal> {
        if text == ALL_NAMESPACES { Ok(text.into()) } else { self.namespace(text) }
    }

    /// The namespace of a call, if it is well-formed and allowed.
    pub fn namespace(&self, text: &str) -> Result<Namespace, Refusal> {
        let namespace = fields::namespace(&self.limits, text)?;
        match &self.namespaces {
            Some(known) if !known.contains(text) => {
                let message = "is not configured on this node, which has `strict_namespaces` set";
                let refusal = Refusal::new(Reason::NotAllowed, message);
                Err(Refusal { field: Some("namespace".to_owned()), ..refusal })
            }
            _ => Ok(namespace),
        }
    }
}
