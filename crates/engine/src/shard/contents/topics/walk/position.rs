//! How far a walk over all topics of a shard has come.

use std::vec;

use forebay_types::TopicId;

use crate::striped::STRIPES;

/// Where a walk over all topics continues. A part of the table may be longer than a slice of the walk, so the
/// topics of a part are noted first.
#[derive(Debug, Default)]
pub(in crate::shard) struct WalkPosition {
    /// The part of the table that comes next; `None` once all of them came.
    part: Option<usize>,
    /// The rest of the part before.
    noted: vec::IntoIter<TopicId>,
}

impl WalkPosition {
    /// Goes back to the first part.
    pub fn begin(&mut self) {
        *self = Self { part: Some(0), noted: Vec::new().into_iter() };
    }

    /// Nothing comes any more.
    pub fn is_over(&self) -> bool {
        self.part.is_none() && self.noted.len() == 0
    }

    /// Takes the number of the next part.
    pub fn next_part(&mut self) -> Option<usize> {
        let part = self.part?;
        self.part = (part + 1 < STRIPES).then_some(part + 1);
        Some(part)
    }

    /// These topics are in the part that comes now.
    pub fn note(&mut self, topics: Vec<TopicId>) {
        self.noted = topics.into_iter();
    }

    /// Takes the next topic of the part.
    pub fn next_noted(&mut self) -> Option<TopicId> {
        self.noted.next()
    }
}
