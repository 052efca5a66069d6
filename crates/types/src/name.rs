//! Names that users and operators give.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

/// A tenant's name.
pub type Namespace = Arc<str>;
/// A topic's name inside its namespace. Where a call may ask for many topics by the begin of their names,
/// that with a `*` behind it.
pub type Topic = Arc<str>;

/// Stands at the end of a name for whatever may come there: `calls/*` is all topics that begin with `calls/`.
const ANY_END: char = '*';

/// Stands for all tenants where a call may be about all of them. It is the name of none.
pub const ALL_NAMESPACES: &str = "-";

/// Whether names of tenants and topics may have it: letters, digits, `.`, `_`, `:`, `/` and `-`.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte)
}

/// Why a text names no tenant or topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has no bytes.
    #[error("must not be empty")]
    Empty,
    /// It contains something else than a name may.
    #[error("must contain only A-Z a-z 0-9 . _ : / -")]
    Character,
    /// It stands for all tenants.
    #[error("must name one namespace: - stands for all of them, and is the name of none")]
    All,
}

/// Checks the characters of a topic's name, or of the beginning of names.
pub fn check_name(text: &str) -> Result<(), NameError> {
    match text {
        "" => Err(NameError::Empty),
        text if text.bytes().all(is_name_byte) => Ok(()),
        _ => Err(NameError::Character),
    }
}

/// Checks the name of one tenant.
pub fn check_namespace(text: &str) -> Result<(), NameError> {
    if text == ALL_NAMESPACES { Err(NameError::All) } else { check_name(text) }
}

/// A topic, named in full.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

    /// The text with which the names of topics begin for which this one stands: `calls/` for `calls/*`.
    /// `None`: it is the name of one topic.
    pub fn prefix(&self) -> Option<&str> {
        self.topic.strip_suffix(ANY_END)
    }

    /// Whether this is the other one, or stands for it.
    pub fn covers(&self, other: &Self) -> bool {
        self.namespace == other.namespace && topic_covers(&self.topic, &other.topic)
    }
}

/// All topics whose names begin with a text, which has been checked. No topic's name has a `*`.
pub fn topics_with_prefix(prefix: &str) -> Topic {
    format!("{prefix}{ANY_END}").into()
}

/// Whether a topic's name stands for all that begin alike.
pub fn is_prefix(topic: &str) -> bool {
    topic.ends_with(ANY_END)
}

/// Whether a topic's name, or a prefix with `*` behind it, is that of another one, or stands for it.
pub fn topic_covers(all: &str, topic: &str) -> bool {
    match all.strip_suffix(ANY_END) {
        Some(prefix) => topic.starts_with(prefix),
        None => all == topic,
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, Borrow::<str>::borrow(&self.topic))
    }
}

/// A node of a cluster, as its operators name it: 1 to 100 bytes of letters, digits, `.`, `_` and `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// The most bytes of a name.
    pub const BYTES_MAX: usize = 100;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The string does not name a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NodeNameError {
    /// It has no bytes, or too many.
    #[error("a node's name has 1 to {max} bytes, and this one has {0}", max = NodeName::BYTES_MAX)]
    Length(usize),
    /// It contains something else than a name may.
    #[error("a node's name has letters (a to z), digits, '.', '_' and '-' only, and this one has {0:?}")]
    Character(char),
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(text: &str) -> Result<Self, NodeNameError> {
        if text.is_empty() || text.len() > Self::BYTES_MAX {
            return Err(NodeNameError::Length(text.len()));
        }
        let may = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match text.chars().find(|c| !may(*c)) {
            Some(other) => Err(NodeNameError::Character(other)),
            None => Ok(Self(text.into())),
        }
    }
}

impl TryFrom<String> for NodeName {
    type Error = NodeNameError;

    fn try_from(text: String) -> Result<Self, NodeNameError> {
        text.parse()
    }
}

impl From<NodeName> for String {
    fn from(name: NodeName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_the_topics_that_begin_with_it() {
        let covers = |one: &str, other: &str| TopicName::new("a", one).covers(&TopicName::new("a", other));
        let all = topics_with_prefix("calls/");
        assert!(covers(&all, "calls/") && covers(&all, "calls/7") && covers(&all, "calls/7/*"));
        assert!(!covers(&all, "calls") && !covers(&all, "Calls/7") && !covers("calls", "calls/7"));
        assert!(covers("calls", "calls") && covers(&topics_with_prefix(""), "calls"));
        assert!(!TopicName::new("a", all.clone()).covers(&TopicName::new("b", "calls/7")));
        let prefix = |topic: &str| TopicName::new("a", topic).prefix().map(str::to_owned);
        assert_eq!((prefix(&all).as_deref(), prefix("calls/")), (Some("calls/"), None));
    }

    #[test]
    fn the_word_for_all_tenants_names_none() {
        assert_eq!(check_namespace("-"), Err(NameError::All));
        for name in ["--", "-a", "a-", "team/a:b.c_1"] {
            assert_eq!(check_namespace(name), Ok(()), "{name}");
        }
        for (wrong, error) in
            [("", NameError::Empty), ("a b", NameError::Character), ("*", NameError::Character)]
        {
            assert_eq!((check_namespace(wrong), check_name(wrong)), (Err(error), Err(error)), "{wrong:?}");
        }
        assert_eq!(check_name("-"), Ok(()), "a topic, or the beginning of names");
    }

    #[test]
    fn a_node_has_a_plain_name() {
        let longest = "n".repeat(NodeName::BYTES_MAX);
        for name in ["a", "node-1", "forebay_2.example.org", "A9", &longest] {
            assert_eq!(name.parse::<NodeName>().unwrap().to_string(), name);
        }
        for (wrong, why) in [
            ("", "has 0"),
            (&"n".repeat(NodeName::BYTES_MAX + 1), "has 101"),
            ("node 1", "' '"),
            ("n\u{f6}de", "'\u{f6}'"),
            ("a/b", "'/'"),
        ] {
            let error = wrong.parse::<NodeName>().unwrap_err().to_string();
            assert!(error.contains(why), "{wrong:?}: {error}");
        }
    }
}
