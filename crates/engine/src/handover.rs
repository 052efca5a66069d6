//! Hands delivered items to their caller, or gives them back: between the engine's task and the caller's
//! nothing is lost, wherever the caller goes away.

use forebay_types::Receipt;
use tokio::sync::mpsc::UnboundedSender;

use crate::{Delivered, event::Event, op::Picked};

/// How to take back a delivery that nobody received.
pub(crate) enum Undo {
    /// Release its lease.
    Release(Receipt),
    /// Insert it again: it was taken at most once.
    Restore { shard: usize, life: u64, picked: Box<Picked> },
}

/// Delivered items on their way to the caller.
pub(crate) struct Handover {
    items: Vec<Delivered>,
    undo: Vec<Undo>,
    back: UnboundedSender<Event>,
}

impl Handover {
    pub fn new(items: Vec<Delivered>, undo: Vec<Undo>, back: UnboundedSender<Event>) -> Self {
        Self { items, undo, back }
    }

    /// The caller has them.
    pub fn take(mut self) -> Vec<Delivered> {
        self.undo.clear();
        std::mem::take(&mut self.items)
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if !self.undo.is_empty() {
            // If the engine has stopped, the leases run out by themselves.
            let _ = self.back.send(Event::NotHanded(std::mem::take(&mut self.undo)));
        }
    }
}
