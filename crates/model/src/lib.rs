//! Models of ownership, which are checked in every order of events, within bounds.
//!
//! - [`ownership`]: the nodes that own, want and give one shard, with faults at every moment. One shard is
//!   enough: its fence decides about it alone.
//! - [`assignment`]: the nodes and operators that change the catalog's assignment.
//!
//! Both call the program's own decisions (`forebay_engine::claim`, `forebay_cluster::plan`). What surrounds
//! these in the program, tasks and statements, is made small here: an operation of a store, or a question,
//! takes effect at once, or as long after it was sent as the faults that are left allow. Planted mistakes
//! ([`Mistake`]) show that the checks find something.
//!
//! The checker is stateright's, breadth first: what it finds is the shortest way to it. Time is counted in
//! steps and bounded, and so is each kind of fault. So no state is met twice on one way, and every way ends.
//! That every shard has an owner *at the end* is checked as a property of the last states:
//! stateright's `eventually` overlooks ways that meet others.

pub mod assignment;
mod explore;
mod mistake;
pub mod ownership;

pub use explore::{Checked, Finding, explore};
pub use mistake::Mistake;
