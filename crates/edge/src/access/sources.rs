//! Sources of the table of credentials: the file of tokens, the tokens of the catalog, and the certificates
//! of the configuration. Each has one writer; whoever has something new makes the whole table anew.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_access::{Grant, Record, Table, TokenId};
use tokio::sync::watch;

/// Sources of the table.
pub struct Sources {
    /// The tokens and certificates of each source.
    tokens: Mutex<Tokens>,
    /// Sends the table to the parts of the node that look credentials up.
    table: watch::Sender<Arc<Table>>,
}

/// The tokens and certificates of each source.
#[derive(Default)]
struct Tokens {
    /// Names in certificates, and what their holders may do.
    certificates: Vec<(String, Vec<Grant>)>,
    /// Tokens of the file.
    file: Vec<Record>,
    /// Tokens of the catalog. If both have an id, that of the catalog counts: it can be revoked there.
    catalog: Vec<Record>,
}

impl Sources {
    /// With these certificates, and no tokens yet.
    pub fn new(certificates: Vec<(String, Vec<Grant>)>) -> Self {
        let table = Table::new([], certificates.iter().cloned());
        let tokens = Mutex::new(Tokens { certificates, ..Tokens::default() });
        Self { tokens, table: watch::Sender::new(Arc::new(table)) }
    }

    /// Sees the newest table.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Table>> {
        self.table.subscribe()
    }

    /// The configuration has these certificates from now on.
    pub fn set_certificates(&self, certificates: Vec<(String, Vec<Grant>)>) {
        let mut tokens = self.lock();
        tokens.certificates = certificates;
        self.publish(&tokens);
    }

    /// The file has these tokens from now on.
    pub(crate) fn set_file(&self, records: Vec<Record>) {
        let mut tokens = self.lock();
        tokens.file = records;
        self.publish(&tokens);
    }

    /// The catalog has these tokens from now on.
    pub fn set_catalog(&self, records: Vec<Record>) {
        let mut tokens = self.lock();
        tokens.catalog = records;
        self.publish(&tokens);
    }

    /// The table is sent while the lock is held, so that an older one does not replace it.
    fn publish(&self, tokens: &Tokens) {
        let all = tokens.file.iter().chain(&tokens.catalog).cloned();
        self.table.send_replace(Arc::new(Table::new(all, tokens.certificates.iter().cloned())));
    }

    fn lock(&self) -> MutexGuard<'_, Tokens> {
        // A panic while the lock is held leaves valid values.
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokens that were used, to be noted in the catalog.
#[derive(Debug, Clone, Default)]
pub struct UsedTokens(Arc<Mutex<BTreeSet<TokenId>>>);

impl UsedTokens {
    /// A token was used.
    pub fn note(&self, id: TokenId) {
        self.lock().insert(id);
    }

    /// One of them, if there is one.
    pub fn take(&self) -> Option<TokenId> {
        self.lock().pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<TokenId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use forebay_access::{Credential, RANDOM_BYTES, Token};
    use forebay_types::Timestamp;

    use super::*;

    #[test]
    fn tokens_of_both_sources_hold_and_the_catalog_decides_about_its_own() {
        let sources = Sources::new(vec![("worker".to_owned(), Vec::new())]);
        let table = sources.subscribe();
        let [one, two] = [1, 2].map(|seed| Token::of_random(&[seed; RANDOM_BYTES]));
        let record = |token: &Token, revoked| {
            let (id, hashes) = (token.id().clone(), vec![token.hash()]);
            let (name, grants, ends, overlap_ends, root) = Default::default();
            Record { id, name, hashes, grants, ends, overlap_ends, revoked, root }
        };
        let accepted = |token: &Token| {
            let shown = Credential::of_token(&token.reveal()).unwrap();
            table.borrow().authenticate(&shown, Timestamp::from_micros(0)).is_ok()
        };
        sources.set_file(vec![record(&one, false)]);
        sources.set_catalog(vec![record(&two, false)]);
        assert!(accepted(&one) && accepted(&two));
        sources.set_catalog(vec![record(&one, true), record(&two, false)]);
        assert!(!accepted(&one) && accepted(&two));
        sources.set_file(Vec::new());
        assert!(accepted(&two));
        let shown = Credential::Certificate { name: "worker".to_owned(), ends: Timestamp::from_micros(1) };
        let is_known = || table.borrow().authenticate(&shown, Timestamp::from_micros(0)).is_ok();
        assert!(is_known());
        sources.set_certificates(vec![("other".to_owned(), Vec::new())]);
        assert!(!is_known() && accepted(&two), "the configuration was read again");
    }
}
