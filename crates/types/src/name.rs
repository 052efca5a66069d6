//! Names that users give.

use std::{borrow::Borrow, fmt, sync::Arc};

/// A tenant's name.
pub type Namespace = Arc<str>;
/// A topic's name inside its namespace.
pub type Topic = Arc<str>;

/// A topic, named in full.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName {
    /// The tenant.
    pub namespace: Namespace,
    /// The topic inside the tenant.
    pub topic: Topic,
}

impl TopicName {
    /// From two strings that have been checked already.
    pub fn new(namespace: impl Into<Namespace>, topic: impl Into<Topic>) -> Self {
        Self { namespace: namespace.into(), topic: topic.into() }
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, Borrow::<str>::borrow(&self.topic))
    }
}
