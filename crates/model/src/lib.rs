//! Models of ownership and of the assignment, which are checked in every order of events, within bounds.
#![doc = include_str!("../README.md")]

pub mod assignment;
mod explore;
mod mistake;
pub mod ownership;

pub use explore::{CheckResult, Finding, explore};
pub use mistake::Mistake;
