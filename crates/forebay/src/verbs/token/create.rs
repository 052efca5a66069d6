//! Makes a token.

use std::{path::Path, time::Duration};

use forebay_access::{Grant, Record, Token, append};
use forebay_edge::random::random_bytes;
use forebay_types::{Clock as _, SystemClock};

use super::file;
use crate::failure::Failure;

/// Makes a token and adds its hash to a file.
pub fn create(path: &Path, name: &str, grants: Vec<Grant>, ends: Option<Duration>) -> Result<Token, Failure> {
    let token = random()?;
    let record = Record {
        id: token.id().clone(),
        name: name.to_owned(),
        hashes: vec![token.hash()],
        grants,
        ends: ends.map(|span| SystemClock::default().wall().plus(span)),
        overlap_ends: None,
        revoked: false,
        root: String::new(),
    };
    file::change(path, |text| append(text, &record).map_err(Failure::from_display))?;
    Ok(token)
}

/// A token that nobody has had.
pub fn random() -> Result<Token, Failure> {
    Ok(Token::of_random(&random_bytes().map_err(Failure::from_display)?))
}
