//! Room for what is on its way to one node at once. Each bound is shared by tenants: one has at most a
//! quarter.

use std::sync::Arc;

use forebay_engine::{Charge, OverBudget, TenantBudget};
use forebay_types::Namespace;

/// Calls on their way to one node. A connection has 1,024 streams, and none of a healthy shard must wait for
/// one of a sick shard to end.
const CALLS_MAX: usize = 960;

/// The bounds.
pub struct Room {
    /// Calls.
    calls: Arc<TenantBudget>,
    /// Bytes of enqueues.
    enqueues: Arc<TenantBudget>,
    /// Bytes of acks, nacks and extensions: they free what enqueues take.
    settlements: Arc<TenantBudget>,
}

/// Purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// To store items.
    Enqueue,
    /// To end or continue deliveries.
    Settle,
}

/// The place of a call on its way. Dropped with the call.
pub struct Place {
    /// The call.
    _call: Charge,
    /// Its bytes.
    _bytes: Charge,
}

/// A bound that is reached: its name in messages and metrics, and whose it is.
pub struct NoRoom {
    /// The key of the limit.
    pub limit: &'static str,
    /// Of the tenant, or of all.
    pub over: OverBudget,
}

impl Room {
    /// Nothing is on its way. So many bytes may be, of enqueues and of settlements each.
    pub fn new(bytes: usize) -> Self {
        let [enqueues, settlements] = [bytes; 2].map(TenantBudget::new);
        Self { calls: TenantBudget::new(CALLS_MAX), enqueues, settlements }
    }

    /// Bytes on their way: of enqueues or of settlements, whichever are more.
    pub(crate) fn used_bytes(&self) -> usize {
        self.enqueues.used().max(self.settlements.used())
    }

    /// Takes a place for a call.
    pub fn take(&self, namespace: &Namespace, load: Load, bytes: usize) -> Result<Place, NoRoom> {
        let no_room = |limit| move |over| NoRoom { limit, over };
        let of_bytes = match load {
            Load::Enqueue => &self.enqueues,
            Load::Settle => &self.settlements,
        };
        Ok(Place {
            _call: self.calls.take(namespace, 1).map_err(no_room("calls to another node"))?,
            _bytes: of_bytes.take(namespace, bytes).map_err(no_room("memory.forward_bytes"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settlements_have_room_of_their_own_and_a_tenant_has_a_quarter_of_the_calls() {
        let room = Room::new(4_000);
        let (a, b) = (Namespace::from("a"), Namespace::from("b"));
        let _items = room.take(&a, Load::Enqueue, 900).ok().unwrap();
        assert_eq!(room.take(&a, Load::Enqueue, 101).err().unwrap().limit, "memory.forward_bytes");
        let mut calls: Vec<Place> =
            (1..CALLS_MAX / 4).map(|_| room.take(&a, Load::Settle, 1).ok().unwrap()).collect();
        let full = room.take(&a, Load::Settle, 1).err().unwrap();
        assert_eq!((full.limit, full.over), ("calls to another node", OverBudget::Tenant));
        calls.push(room.take(&b, Load::Settle, 1).ok().unwrap());
        calls.clear();
        assert!(room.take(&a, Load::Settle, 1).is_ok());
    }
}
