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

/// Room for take-overs, by server.
#[derive(Debug, Default)]
pub(crate) struct TakeOverRoom(Mutex<HashMap<String, Arc<Semaphore>>>);

impl TakeOverRoom {
    /// The room of a server, as the store names it.
    pub fn of(&self, server: &str) -> Arc<Semaphore> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.entry(server.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))).clone()
    }
}
