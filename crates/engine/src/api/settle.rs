//! Ack, nack and lease extension: how a delivery ends or continues.

use std::time::Duration;

use forebay_types::{Receipt, Refusal, Timestamp};

/// A nack of one delivery.
#[derive(Debug, Clone)]
pub struct NackOf {
    /// The delivery.
    pub receipt: Receipt,
    /// The fate of the item.
    pub action: NackAction,
    /// New metadata.
    pub metadata: Option<Vec<u8>>,
    /// Why; may be empty.
    pub reason: String,
}

/// The fate of a nacked item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NackAction {
    /// It failed; ready again after the delay. `None`: after the retry delay of its topic.
    Fail(Option<Duration>),
    /// It did not fail; ready again after the delay. Without a delay it keeps its old place.
    Release(Duration),
    /// To the dead letters at once.
    DeadLetter,
}

/// An extension of one delivery.
#[derive(Debug, Clone, Copy)]
pub struct ExtendOf {
    /// The delivery.
    pub receipt: Receipt,
    /// From now; `None`: the item's own duration.
    pub lease: Option<Duration>,
}

/// The result for one delivery that an ack or a nack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settlement {
    /// The item is back earlier than it was to be, since it expires.
    pub delay_cut: bool,
}

/// The answer to one member of an ack or nack call.
pub type SettlementResult = Result<Settlement, Refusal>;
/// The answer to one member of an extension call: when the lease ends now.
pub type ExtensionResult = Result<Timestamp, Refusal>;
