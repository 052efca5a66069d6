//! A simulated process: an engine, and what belongs to it.

use std::sync::Arc;

use forebay_engine::Engine;
use forebay_front::Front;
use forebay_types::ShardId;

use super::{clock::SimClock, cluster::MemberOf, tasks::ProcessTasks};
use crate::fake::Process;

/// An engine in its process.
#[derive(Clone)]
pub struct Node {
    /// Its state.
    pub process: Process,
    /// The engine.
    pub engine: Engine,
    /// Passes calls on to other processes, in some runs.
    pub front: Front,
    /// The engine's tasks.
    pub tasks: ProcessTasks,
    /// The shards that it was configured with.
    pub shards: Vec<ShardId>,
    /// Its clocks.
    pub clock: Arc<SimClock>,
    /// Its `host:port`.
    pub address: String,
    /// Its part in its cluster, in runs with a catalog.
    pub member: Option<MemberOf>,
}
