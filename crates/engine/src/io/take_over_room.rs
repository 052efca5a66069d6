//! How many shards of one server a node takes over at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::Semaphore;

/// Take-overs of shards of one server at once. Each opens connections and reads topics. Where a node takes a
/// hundred at a time, the server has no time for the renewals of those that it has already, and they are lost
/// again.
const AT_ONCE: usize = 8;
/// Shards of one server that are read ahead at once. Their owners serve them meanwhile, and lose nothing by
/// waiting.
const AHEAD_AT_ONCE: usize = 2;

/// The permits for take-overs and reads of one server's shards at once.
#[derive(Debug, Clone)]
pub(crate) struct ServerRoom {
    /// Take-overs.
    pub take_overs: Arc<Semaphore>,
    /// Reads ahead of take-overs.
    pub reads_ahead: Arc<Semaphore>,
}

/// Room for take-overs, by server.
#[derive(Debug, Default)]
pub(crate) struct TakeOverRoom(Mutex<HashMap<String, ServerRoom>>);

impl TakeOverRoom {
    /// The room of a server, as the store names it.
    pub fn of(&self, server: &str) -> ServerRoom {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || ServerRoom {
            take_overs: Arc::new(Semaphore::new(AT_ONCE)),
            reads_ahead: Arc::new(Semaphore::new(AHEAD_AT_ONCE)),
        };
        rooms.entry(server.to_owned()).or_insert_with(new).clone()
    }
}
