//! What the table of calls with a request id contains.

use forebay_types::Timestamp;

/// A call that is about to be made under an id of its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRequest {
    /// SHA-256 of the caller and the request id.
    pub id: [u8; 32],
    /// SHA-256 of the method and the request.
    pub digest: [u8; 32],
    /// Now.
    pub begun_at: Timestamp,
    /// A call that began earlier is forgotten.
    pub forget_before: Timestamp,
}

/// What is known of the calls under an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestFound {
    /// This one is the first.
    First,
    /// There was another, and its end is not known: it is being made, or its node died meanwhile.
    Unanswered,
    /// There was another, and this was its answer. Empty: it was not kept.
    Answered(Vec<u8>),
    /// There was one of another method, or with other fields.
    Differs,
}
