//! Access settings of the configuration. The file of tokens is read when the node starts.

use std::path::PathBuf;

use forebay_access::Grant;

/// `[access]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessSettings {
    /// The file of tokens. `None`: there are none.
    pub tokens_file: Option<PathBuf>,
    /// Tokens of the catalog are accepted.
    pub catalog_tokens: bool,
    /// A file with the text of a token, which is put into the catalog while no token there may do everything.
    pub bootstrap_token_file: Option<PathBuf>,
    /// Names in the certificates of clients, and what their holders may do.
    pub certificates: Vec<(String, Vec<Grant>)>,
}

impl AccessSettings {
    /// Whether requests need a credential.
    pub fn is_on(&self) -> bool {
        self.tokens_file.is_some() || self.catalog_tokens || !self.certificates.is_empty()
    }
}
