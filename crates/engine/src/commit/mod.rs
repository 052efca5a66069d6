//! When shards commit, and what a resolved batch means to callers.

pub(crate) mod answers;
mod handled;
pub(crate) mod scheduler;
