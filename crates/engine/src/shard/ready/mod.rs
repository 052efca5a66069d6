//! The ready index: the items of a topic that can be delivered.

pub(crate) mod item;
mod items;
pub(crate) mod window;
