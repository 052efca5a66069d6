//! CancelItems: changes of single items, which are named by their ids.

use forebay_types::{ItemId, Namespace, Refusal};

use super::ItemState;

/// A change of some items of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCall {
    /// The tenant.
    pub namespace: Namespace,
    /// The items, each of them once.
    pub items: Vec<ItemId>,
    /// What is done to each.
    pub change: ItemChange,
    /// It is only said what would be done.
    pub dry_run: bool,
}

/// What is done to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemChange {
    /// It is removed, wherever it is. If it is leased, its receipt is over.
    Cancel,
}

/// The answer to one member of a change: the state in which the item was.
pub type Changed = Result<ItemState, Refusal>;
