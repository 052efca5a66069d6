//! Parts that every call needs: the engine, the rules for requests, and the clock.

use std::{collections::BTreeSet, sync::Arc};

use forebay_engine::Engine;
use forebay_front::Front;
pub use forebay_types::ALL_NAMESPACES;
use forebay_types::{Clock, Limits, Namespace, Reason, Refusal};

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

/// The queue service. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    /// Executes the calls that this node can only serve itself.
    pub engine: Engine,
    /// Executes the others, here or at other nodes.
    pub front: Front,
    /// Checked before the engine is called.
    pub rules: Arc<RequestRules>,
    /// Decides whether an item would expire before it may be delivered.
    pub clock: Arc<dyn Clock>,
}
