//! The walk over all topics, a slice at a time.

pub(super) mod position;
mod verbs;
