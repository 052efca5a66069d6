//! Rows of the table of calls with a request id.

use forebay_types::Timestamp;

/// A call that is about to be made under an id of its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRequest {
    /// SHA-256 of the caller and the request id.
    pub id: [u8; 32],
    /// SHA-256 of the method and the request.
    pub digest: [u8; 32],
    /// Now. Of calls with one id at one moment the first to come is the first.
    pub begun_at: Timestamp,
    /// A call without an answer that began earlier is over, and nobody knows what became of it.
    pub over_before: Timestamp,
    /// A call that began earlier is forgotten.
    pub forget_before: Timestamp,
}

/// State of the calls under an id, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFound {
    /// This one is to be made: it is the first, or all others are over without an answer.
    First,
    /// Another one is being made, or its node died meanwhile.
    UnderWay,
    /// There was another, and this was its answer. Empty: it was not kept.
    Answered(Vec<u8>),
    /// There was one of another method, or with other fields.
    Differs,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestEnd {
    /// It was answered. Empty: the answer is not to be kept.
    Answered(Vec<u8>),
    /// It had no effect.
    NoEffect,
    /// Nobody knows: it was given up. It counts as one that began at this time.
    GivenUp(Timestamp),
}
