//! Work that leaves a shard: all of it once the shard is lost, that of callers while a batch is overdue.

pub(super) mod abandoned;
pub(super) mod overdue;
pub(super) mod topics;
mod verbs;
