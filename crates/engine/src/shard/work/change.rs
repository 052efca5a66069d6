//! A change of one item that waits.

use bytes::Bytes;
use forebay_types::{Namespace, Seq};

use super::{Cost, ReplySlot, Work};
use crate::api::ItemChange;

/// Bytes of a change while it waits, beside new metadata, its answer included.
const CHANGE_BYTES: usize = 256;

/// A change of one item.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRequest {
    /// The tenant.
    pub namespace: Namespace,
    /// The item.
    pub seq: Seq,
    /// The change.
    pub change: ItemChange,
    /// It is only said what would be done.
    pub dry_run: bool,
    /// The member that the answer is for.
    pub slot: ReplySlot,
}

impl Work for ChangeRequest {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        let more = match &self.change {
            ItemChange::Cancel => 0,
            ItemChange::Update(update) => update.metadata.as_ref().map_or(0, Bytes::len),
        };
        Cost { rows: 1, bytes: CHANGE_BYTES + more }
    }
}
