//! Tallies from before the take-over: how far they are read, and what is done with them.

pub(super) mod load;
mod verbs;
