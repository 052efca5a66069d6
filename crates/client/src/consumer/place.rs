//! The one server that a consumer asks, where each hands out the items of all shards: one that works, and
//! near the items.

use std::sync::Arc;

use crate::endpoints::{Endpoint, Endpoints, InUse, Route};

/// Answers in a row that name the same other server, before the consumer moves there.
const NAMED_BEFORE_MOVE: u32 = 3;

/// The server that is asked.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The server. `None`: one is to be chosen.
    at: Option<Arc<Endpoint>>,
    /// Servers that failed since the last answer.
    failed: Vec<u32>,
    /// The server from which most items of the last answers came, if that was another one.
    source: Option<u32>,
    /// How many answers in a row named it.
    named: u32,
}

impl Place {
    /// The servers to ask now: one that works, or all while one of them hands out its own items alone.
    pub(super) fn servers(&mut self, endpoints: &Endpoints, in_use: &InUse) -> Vec<Arc<Endpoint>> {
        if !in_use.each_delivers_all || in_use.endpoints.len() < 2 {
            *self = Self::default();
            return in_use.endpoints.to_vec();
        }
        let current = self.at.take().filter(|at| stays(at.id(), endpoints, in_use));
        self.at = current.or_else(|| endpoints.choose(&Route::InTurn, None, &mut self.failed));
        self.at.iter().cloned().collect()
    }

    /// A server answered. `source`: where most of its items come from, if there are items and that is known.
    pub(super) fn answered(&mut self, id: u32, items: usize, source: Option<Arc<Endpoint>>) {
        if self.at.as_ref().is_none_or(|at| at.id() != id) {
            return;
        }
        self.failed.clear();
        // Without items there is nothing to be near to.
        if items == 0 {
            return;
        }
        let other = source.filter(|source| source.id() != id);
        let before = std::mem::replace(&mut self.source, other.as_ref().map(|other| other.id()));
        self.named = if self.source == before { self.named + 1 } else { 1 };
        if other.is_some() && self.named >= NAMED_BEFORE_MOVE {
            *self = Self { at: other, ..Self::default() };
        }
    }

    /// A server failed, or cannot serve the call: another one is chosen.
    pub(super) fn failed(&mut self, id: u32) {
        if self.at.take_if(|at| at.id() == id).is_some() && !self.failed.contains(&id) {
            self.failed.push(id);
        }
    }
}

/// Whether the server of this id goes on being asked: no other one is better.
fn stays(id: u32, endpoints: &Endpoints, in_use: &InUse) -> bool {
    let listed = in_use.endpoints.iter().any(|one| one.id() == id);
    let works = endpoints.works(id);
    if listed && works {
        return true;
    }
    let mut others = in_use.endpoints.iter().filter(|one| one.id() != id);
    (listed || works) && !others.any(|one| endpoints.works(one.id()))
}
