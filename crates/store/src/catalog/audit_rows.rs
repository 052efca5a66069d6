//! Rows of the table of audit records.

use std::fmt;

use forebay_types::Timestamp;

/// Names a record. Ids are in the order of the times in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AuditId(pub [u8; 16]);

impl AuditId {
    /// Of a call at a time. `random`: apart from all others of that time.
    pub fn new(at: Timestamp, random: [u8; 8]) -> Self {
        let mut id = [0; 16];
        let (time, rest) = id.split_at_mut(8);
        time.copy_from_slice(&at.as_micros().max(0).to_be_bytes());
        rest.copy_from_slice(&random);
        Self(id)
    }

    /// Before all ids of a time.
    pub fn first_of(at: Timestamp) -> Self {
        Self::new(at, [0; 8])
    }

    /// When the call was made.
    pub fn at(self) -> Timestamp {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        Timestamp::from_micros(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for AuditId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// How it is known who made a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// It is not: there is no access control.
    Anyone,
    /// By a token.
    Token,
    /// By the certificate of the connection.
    Certificate,
    /// An operator wrote to the catalog itself.
    Operator,
    /// A number that a later program wrote.
    Unknown(i64),
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditOutcome {
    /// It was about to be made. Nothing is known of its end.
    Intended,
    /// It was done.
    Done,
    /// It failed.
    Failed,
    /// Its caller had no right to it, so it was not made. To earlier programs it is one that failed.
    Denied,
    /// A number that a later program wrote.
    Unknown(i64),
}

/// A call that changes something or shows payloads. Longer texts than these do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Names it, and says when the call was made.
    pub id: AuditId,
    /// The name of the token or the certificate, up to 255 bytes. Empty: nobody is known.
    pub principal: String,
    /// How it is known who that is.
    pub kind: PrincipalKind,
    /// The id of the caller's token. Empty: it has none.
    pub token_id: String,
    /// From where it came, up to 64 bytes.
    pub peer: String,
    /// The call, up to 64 bytes.
    pub method: String,
    /// The tenant that it names, up to 255 bytes. Empty: none.
    pub namespace: String,
    /// Name of its target, up to 255 bytes.
    pub target: String,
    /// Why, in the words of the caller, up to 1 KiB.
    pub reason: String,
    /// The rest of the request, up to 1 KiB.
    pub summary: String,
    /// Its outcome.
    pub outcome: AuditOutcome,
    /// The reason of the error if it failed, up to 64 bytes.
    pub failure: String,
    /// The operation that it began, up to 32 bytes.
    pub operation_id: String,
    /// The node that took it, up to 100 bytes.
    pub node: String,
    /// The trace of which it is part, 32 hexadecimal digits. Empty: none.
    pub trace_id: String,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEnd {
    /// Its outcome.
    pub outcome: AuditOutcome,
    /// The reason of the error if it failed.
    pub failure: String,
    /// Its target, if only its end tells. Empty: as before.
    pub target: String,
    /// The operation that it began.
    pub operation_id: String,
    /// The reason and the summary, where less of them is kept than was written at the beginning.
    pub shortened: Option<(String, String)>,
}

/// Which records are read, the latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only records of this tenant. `None`: of all, and of none.
    pub namespace: Option<String>,
    /// Only records with this id or a higher one.
    pub from: AuditId,
    /// Only records with a lower id than this.
    pub before: AuditId,
    /// At most so many.
    pub limit: u32,
}
