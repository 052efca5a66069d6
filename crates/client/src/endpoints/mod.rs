//! The servers that a client may call: which there are, which of them works, and which one is next.

mod choice;
mod dialer;
mod endpoint;
mod health;
mod learn;
mod origins;
mod route;
mod set;
mod sick_shards;

pub(crate) use dialer::Dialer;
pub(crate) use endpoint::Endpoint;
pub(crate) use learn::Learner;
pub(crate) use route::Route;
pub(crate) use set::{Endpoints, InUse};

#[cfg(test)]
mod tests;
