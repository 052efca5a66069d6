//! The file of tokens, read and understood.

use std::{fs::File, io::Read as _, path::Path};

use forebay_access::{Record, parse};

use super::settings::AccessSettings;

/// A larger file is none. Some 40,000 tokens.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Why access can't be controlled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessError(String);

impl AccessError {
    fn file(message: impl std::fmt::Display) -> Self {
        Self(format!("access.tokens_file: {message}"))
    }

    /// The tokens of the catalog can't be read or changed.
    pub(super) fn catalog(message: &str) -> Self {
        Self(format!("access.catalog_tokens: the catalog: {message}"))
    }

    /// The first token can't be made.
    pub(super) fn bootstrap(message: &str) -> Self {
        Self(format!("the first token (FOREBAY_BOOTSTRAP_TOKEN_FILE): {message}"))
    }
}

/// The content of the file. Without one there are no tokens.
pub fn read(settings: &AccessSettings) -> Result<Vec<u8>, AccessError> {
    let Some(path) = &settings.tokens_file else { return Ok(Vec::new()) };
    let unreadable =
        |error: std::io::Error| AccessError::file(format!("cannot read {}: {error}", path.display()));
    let mut content = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(path, "is larger than 8 MiB"));
    }
    Ok(content)
}

/// The tokens of a file's content.
pub fn records(settings: &AccessSettings, content: &[u8]) -> Result<Vec<Record>, AccessError> {
    let path = settings.tokens_file.as_deref().unwrap_or(Path::new(""));
    let text = str::from_utf8(content).map_err(|_| wrong(path, "is not text"))?;
    parse(text).map_err(|error| wrong(path, &format!("is wrong: {error}")))
}

fn wrong(path: &Path, what: &str) -> AccessError {
    AccessError::file(format!("{} {what}", path.display()))
}
