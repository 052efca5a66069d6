//! Ranges of topic names.

use std::ops::Bound;

use forebay_types::TopicName;

/// Topics between two names, by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRange {
    /// Where it begins.
    pub from: Bound<TopicName>,
    /// The last name that belongs to it. `None`: it has no end.
    pub through: Option<TopicName>,
}

impl NameRange {
    /// Whether a name belongs to it.
    pub fn contains(&self, name: &TopicName) -> bool {
        let begun = match &self.from {
            Bound::Unbounded => true,
            Bound::Included(from) => name >= from,
            Bound::Excluded(from) => name > from,
        };
        begun && self.through.as_ref().is_none_or(|through| name <= through)
    }
}
