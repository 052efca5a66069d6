//! Open deliveries: the lease log, its ends in order, and how much of it each tenant has.

mod ends;
pub(in crate::shard) mod log;
pub(in crate::shard) mod tenants;
mod verbs;
