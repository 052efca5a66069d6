//! CancelItems and UpdateItem: changes of single items, which are named by their ids.

use std::time::Duration;

use bytes::Bytes;
use forebay_types::{ItemId, Namespace, Refusal, Schedule};

use super::ItemState;

/// A change of some items of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCall {
    /// The tenant.
    pub namespace: Namespace,
    /// The items, each of them once.
    pub items: Vec<ItemId>,
    /// The change, which is the same for each of them.
    pub change: ItemChange,
    /// It is only said what would be done.
    pub dry_run: bool,
}

/// A change of an item by an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemChange {
    /// It is removed, wherever it is. If it is leased, its receipt is over.
    Cancel,
    /// It gets other values, unless it is leased or dead.
    Update(ItemUpdate),
}

/// Values that an item gets. What is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemUpdate {
    /// Smaller numbers are delivered first. Inside its new priority the item keeps the time since which it
    /// is ready.
    pub priority: Option<i32>,
    /// When it may be delivered. A time that has passed makes a scheduled item ready, and moves a ready one
    /// nowhere.
    pub schedule: Option<Schedule>,
    /// Its metadata.
    pub metadata: Option<Bytes>,
    /// It expires so long after the change.
    pub ttl: Option<Duration>,
}

/// The answer to one member of a change: the state in which the item was when it was cancelled, or the one in
/// which it is after an update.
pub type ChangeResult = Result<ItemState, Refusal>;
