//! The ends, and the extensions, of deliveries.

use std::time::Duration;

use forebay_types::{Namespace, Receipt};

use super::{Cost, ReplySlot, Work};
use crate::api::NackAction;

/// Bytes of a settlement that waits, beside a nack's words and metadata, its answer included.
const SETTLE_BYTES: usize = 256;

/// The end, or the extension, of one delivery.
#[derive(Debug, Clone)]
pub(crate) struct SettleRequest {
    /// The tenant.
    pub namespace: Namespace,
    /// The delivery.
    pub receipt: Receipt,
    /// The settlement that is asked for.
    pub kind: SettleKind,
    /// `None`: nobody waits for the answer, the engine itself wants it.
    pub slot: Option<ReplySlot>,
}

impl Work for SettleRequest {
    fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    fn cost(&self) -> Cost {
        let more = match &self.kind {
            SettleKind::Nack { metadata, reason, .. } => metadata.as_ref().map_or(0, Vec::len) + reason.len(),
            SettleKind::Ack
            | SettleKind::Extend { .. }
            | SettleKind::LeaseTimeout
            | SettleKind::FetchTimeout
            | SettleKind::Purge
            | SettleKind::Reset
            | SettleKind::Cancel => 0,
        };
        Cost { rows: 1, bytes: SETTLE_BYTES + more }
    }
}

/// How a delivery ends or continues.
#[derive(Debug, Clone)]
pub(crate) enum SettleKind {
    /// The item is done.
    Ack,
    /// The item is given back.
    Nack {
        /// The fate of the item.
        action: NackAction,
        /// New metadata.
        metadata: Option<Vec<u8>>,
        /// Why; may be empty.
        reason: String,
    },
    /// The lease ends later.
    Extend {
        /// From now; `None`: the item's own duration.
        lease: Option<Duration>,
    },
    /// The lease ended without an ack.
    LeaseTimeout,
    /// The lease of an at-most-once item ended, and nobody has had the item.
    FetchTimeout,
    /// An operation removes the item.
    Purge,
    /// An operation releases the lease.
    Reset,
    /// A change of the item cancels it.
    Cancel,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    /// With an ack.
    Acked,
    /// With a failure.
    Failed,
    /// Otherwise: it was released, or its item was removed.
    Returned,
}

impl SettleKind {
    /// How the delivery ends. `None`: it goes on.
    pub const fn end(&self) -> Option<DeliveryEnd> {
        match self {
            Self::Ack => Some(DeliveryEnd::Acked),
            Self::Nack { action: NackAction::Fail(_) | NackAction::DeadLetter, .. } | Self::LeaseTimeout => {
                Some(DeliveryEnd::Failed)
            }
            Self::Nack { action: NackAction::Release(_), .. }
            | Self::FetchTimeout
            | Self::Purge
            | Self::Cancel
            | Self::Reset => Some(DeliveryEnd::Returned),
            Self::Extend { .. } => None,
        }
    }

    /// Whether the timer or operation that wants it finds it again by itself: nobody has to remember it.
    pub const fn is_found_again(&self) -> bool {
        matches!(self, Self::LeaseTimeout | Self::FetchTimeout) || self.is_of_operation()
    }

    /// An operation wants it, or a change of the item.
    pub const fn is_of_operation(&self) -> bool {
        matches!(self, Self::Purge | Self::Reset | Self::Cancel)
    }
}
