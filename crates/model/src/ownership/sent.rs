//! Messages on their way: operations of the store, and questions between nodes.

use forebay_engine::OwnerAnswer;
use forebay_store::Observation;
use forebay_types::Incarnation;

use super::rows::Tenure;

/// Something that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Operation {
    /// By which node.
    pub node: usize,
    /// Its kind.
    pub kind: Kind,
    /// When.
    pub sent: u8,
    /// Its effect, once there is one.
    pub effect: Option<Effect>,
    /// Nobody waits for its answer any more.
    pub orphan: bool,
}

/// Kind of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A renewal.
    Renew(Tenure),
    /// A batch, of this number, with this call.
    Batch(Tenure, u64, usize),
    /// A take-over of what was seen.
    TakeOver(Incarnation, Observation),
    /// A release, for this successor.
    Release(Tenure, String),
    /// The candidate's question, to this node, and whether the server was slow for the candidate.
    Ask(usize, Tenure, bool),
}

/// Effect of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It was done, or the fence has moved.
    Done(bool),
    /// The shard was taken over, at this batch, or has changed since it was seen.
    Taken(Option<(Tenure, u64)>),
    /// The owner gave this answer.
    Said(OwnerAnswer),
}

impl Operation {
    /// It comes on the connection of the shard's writer, which ends with a take-over and a resolution.
    pub fn is_writers(&self) -> bool {
        matches!(self.kind, Kind::Batch(..) | Kind::Release(..))
    }
}
