//! Which topics and namespaces have metrics of their own.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use forebay_types::{Namespace, TopicName};

/// Which topics have metrics of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedTopics {
    /// Names as `namespace/topic`. One that ends in `*` stands for all that begin so.
    pub patterns: Vec<String>,
    /// The most topics that have them: the first ones that this node sees.
    pub most: usize,
}

impl Default for ReportedTopics {
    fn default() -> Self {
        Self { patterns: vec!["*".to_owned()], most: 1_000 }
    }
}

impl ReportedTopics {
    /// Whether a topic is among those that are wanted.
    pub fn has(&self, name: &TopicName) -> bool {
        let texts = [&*name.namespace, "/", &*name.topic];
        self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => begins_with(texts, prefix),
            None => pattern.len() == texts.map(str::len).iter().sum::<usize>() && begins_with(texts, pattern),
        })
    }
}

/// Whether these texts, one behind the other, begin with that one.
fn begins_with(texts: [&str; 3], mut prefix: &str) -> bool {
    for text in texts {
        match prefix.strip_prefix(text) {
            Some(rest) => prefix = rest,
            None => return text.starts_with(prefix),
        }
    }
    prefix.is_empty()
}

/// Whether a namespace and a topic have metrics of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnMetrics {
    /// The namespace has.
    pub namespace: bool,
    /// The topic has.
    pub topic: bool,
}

impl OwnMetrics {
    /// Namespaces that have metrics of their own: the first ones that a node sees.
    pub const NAMESPACES_MAX: usize = 200;
    /// The name that stands for all others. No namespace has it.
    pub const OTHERS: &str = "(others)";
}

/// The namespaces that have metrics of their own, for those who count beside the engine. The event loop adds
/// them. Something has happened in each, so that nobody gets a name in by calls that are refused.
#[derive(Debug, Clone, Default)]
pub struct ReportedNamespaces(Arc<RwLock<HashSet<Namespace>>>);

impl ReportedNamespaces {
    /// Whether it has.
    pub fn has(&self, namespace: &str) -> bool {
        // Nobody panics with the lock.
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(namespace)
    }

    /// It has them from now on.
    pub(crate) fn add(&self, namespace: Namespace) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(namespace);
    }
}

impl FromIterator<Namespace> for ReportedNamespaces {
    fn from_iter<I: IntoIterator<Item = Namespace>>(names: I) -> Self {
        Self(Arc::new(RwLock::new(names.into_iter().collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_begins_names() {
        let has = |pattern: &str, namespace: &str, topic: &str| {
            let topics = ReportedTopics { patterns: vec![pattern.to_owned()], most: 1 };
            topics.has(&TopicName::new(namespace, topic))
        };
        assert!(has("*", "a", "t") && has("a*", "a", "t") && has("a/*", "a", "t") && has("a/t*", "a", "t"));
        assert!(has("a/t", "a", "t") && has("ab*", "abc", "t") && has("a/t.*", "a", "t.x"));
        assert!(!has("a/t.*", "a", "t") && !has("b*", "a", "t") && !has("a/t", "a", "tt"));
        assert!(
            !has("a/tt", "a", "t") && !has("a", "a", "t") && !has("", "a", "t") && !has("a/t/*", "a", "t")
        );
    }
}
