//! Several nodes with a catalog: each owns some of the shards, and others take them over.
//!
//! Tests that begin with `row_` are named after the rows of the table of faults.

mod anywhere;
mod anywhere_faults;
mod audit;
mod away;
mod bench;
mod cancels;
mod candidates;
mod clocks;
mod commits;
mod conflicts;
mod consumers;
mod dev;
mod faults;
mod forgotten;
mod forward;
mod items;
mod joins;
mod kills;
mod lost_shard;
mod made_tokens;
mod many_polls;
mod moves;
mod named_shards;
pub mod nodes;
mod one_front;
pub mod operate;
mod operations;
mod pauses;
mod peers;
mod prefixes;
mod repeats;
mod servers;
mod set_ups;
mod settings;
mod shards;
mod slow;
mod stuck;
mod tls;
pub mod tokens;
mod traces;
mod transactions;
mod unreached;
mod upgrade;
mod walk;
mod ways;
