//! The ready index: the items of a topic that can be delivered.

pub(crate) mod item;
pub(crate) mod window;
