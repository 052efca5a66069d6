//! Rows of the table of sessions.

use forebay_types::Timestamp;

/// A session of a browser, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of what the cookie holds.
    pub id: [u8; 32],
    /// The token that was shown at the login.
    pub token_id: String,
    /// SHA-256 of the secret that was shown.
    pub secret: [u8; 32],
    /// When the login was.
    pub made_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Timestamp,
}

/// How many sessions a catalog holds. Nodes that add some at the same moment may exceed it by as many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionBounds {
    /// Of one token.
    pub per_token: u32,
    /// In all.
    pub in_all: u32,
}

impl SessionBounds {
    /// Bounds of a catalog. A row has 92 bytes.
    pub const DEFAULT: Self = Self { per_token: 10, in_all: 10_000 };
}

/// A session that is to be added. It is always added: where there is no room, another one is removed. That
/// is the one of its token that was used the longest ago, or, where all tokens together have too many, that
/// of the token that has the most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// The session.
    pub row: SessionRow,
    /// The session of the same browser before, which is removed.
    pub replaces: Option<[u8; 32]>,
    /// Sessions that were made before are over, and removed.
    pub made_before: Timestamp,
    /// Sessions that were not used since are over, and removed.
    pub used_before: Timestamp,
    /// Bounds of the table.
    pub bounds: SessionBounds,
}
