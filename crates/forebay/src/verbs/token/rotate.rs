//! Gives a token another secret.

use std::{path::Path, time::Duration};

use forebay_access::{Token, TokenId};
use forebay_edge::random::random_bytes;
use forebay_types::{Clock as _, SystemClock};

use super::file;
use crate::failure::Failure;

/// Gives a token of a file another secret. The one before holds for so long.
pub fn rotate(path: &Path, id: &TokenId, overlap: Duration) -> Result<Token, Failure> {
    let token = Token::with_secret(id.clone(), &random_bytes().map_err(Failure::from_display)?);
    let now = SystemClock::default().wall();
    file::change(path, |text| {
        forebay_access::rotate(text, id, token.hash(), now, overlap)
            .map_err(Failure::from_display)?
            .ok_or_else(|| file::no_token(id, path))
    })?;
    Ok(token)
}
