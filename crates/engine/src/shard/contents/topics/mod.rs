//! The topics of a shard: their table, their counts, and the walk over all of them.

mod counts;
mod dormant;
pub(in crate::shard) mod figures;
pub(in crate::shard) mod forgotten;
mod loaded;
pub(in crate::shard) mod rates;
pub(in crate::shard) mod state;
pub(in crate::shard) mod table;
mod tallies;
mod verbs;
mod walk;
