//! Credential that a caller has shown.

use forebay_types::Timestamp;

use crate::{
    secret_hash::SecretHash,
    token::{Token, TokenId},
};

/// Credential that a caller has shown, to be looked up in a [`crate::Table`], and looked up again later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// A token.
    Token {
        /// The id in it.
        id: TokenId,
        /// Of the secret in it.
        hash: SecretHash,
    },
    /// A certificate that the handshake has accepted.
    Certificate {
        /// Its name.
        name: String,
        /// From when on it is of no use.
        ends: Timestamp,
    },
}

impl Credential {
    /// Of a token's text; `None` if it is no token.
    pub fn of_token(text: &str) -> Option<Self> {
        let token = Token::parse(text)?;
        Some(Self::Token { hash: token.hash(), id: token.id().clone() })
    }
}
