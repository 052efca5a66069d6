//! Tokens of tests, as a file of tokens keeps them.

use forebay_access::{RANDOM_BYTES, Record, Token, append};

/// A token that is always the same one.
pub fn token(seed: u8) -> Token {
    Token::of_random(&[seed; RANDOM_BYTES])
}

/// A token with these grants, as it is kept.
pub fn record(token: &Token, grants: &[&str]) -> Record {
    Record {
        id: token.id().clone(),
        name: "a".to_owned(),
        hashes: vec![token.hash()],
        grants: grants.iter().map(|grant| grant.parse().unwrap()).collect(),
        ends: None,
        overlap_ends: None,
        revoked: false,
        root: String::new(),
    }
}

/// The text of a file with these tokens.
pub fn file(records: &[Record]) -> String {
    records.iter().fold(String::new(), |text, record| append(&text, record).unwrap())
}
