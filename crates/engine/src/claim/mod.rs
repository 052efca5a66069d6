//! Decisions on the owner of a shard, as functions of what is known. The tasks and the event loop ask stores
//! and other nodes, and do what is decided here. The model (`crates/model`) calls the same functions.

mod hand_over;
mod reply;
mod trust;
mod watch;

pub use self::{
    hand_over::HandOver,
    reply::{DeniedTenure, Reply, reply},
    trust::Trust,
    watch::{CandidateNode, Decision, Lapse, Watch},
};
