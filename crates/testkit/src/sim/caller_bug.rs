//! Planted bugs on the callers' side: the answers of a faulty engine.

/// A planted bug that changes answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerBug {
    /// An ack of an ended delivery is answered OK.
    StaleAckOk,
    /// An ack is answered OK and never reaches the engine.
    AckForgotten,
    /// An enqueue is answered OK and never reaches the engine.
    EnqueueForgotten,
    /// An unknown outcome is reported as a definite failure.
    UnknownTold,
    /// The item of an ended delivery is reported as gone, wherever it is.
    FateMadeUp,
    /// An item is delivered to two callers.
    HandedOutTwice,
    /// The items of an answer are in the wrong order.
    OrderTurned,
    /// A nack is answered OK and never reaches the engine.
    NackForgotten,
    /// An extension is answered with a later end than the stored one.
    ExtensionExaggerated,
    /// A poisoned member's error is reported for its neighbours too.
    PoisonSpreads,
    /// A call that was passed on, and whose answer was lost, counts as not sent.
    LostCountsAsUnsent,
}
