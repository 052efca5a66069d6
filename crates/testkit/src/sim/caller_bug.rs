//! Planted bugs on the callers' side: answers as a wrong engine would give them.

/// What is done to answers on purpose, so that the checker can be seen to notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerBug {
    /// An ack of a delivery that is over is answered OK.
    StaleAckOk,
    /// An ack is answered OK without having been passed on.
    AckForgotten,
    /// An enqueue is answered OK without having been passed on.
    EnqueueForgotten,
    /// An unknown outcome is told as a definite failure.
    UnknownTold,
    /// A delivery that is over is said to be gone, whatever became of its item.
    FateMadeUp,
    /// One of the items of an answer is handed to two callers.
    HandedOutTwice,
    /// The items of an answer are in another order.
    OrderTurned,
    /// A nack is answered OK without having been passed on.
    NackForgotten,
    /// An extension is answered with a later end than was stored.
    ExtensionExaggerated,
    /// A poisoned member's error is told to its neighbour, too.
    PoisonSpreads,
}
