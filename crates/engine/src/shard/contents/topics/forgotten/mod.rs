//! Counts of topics that are forgotten: the rows, and how they come to be.

pub(super) mod rows;
mod verbs;
