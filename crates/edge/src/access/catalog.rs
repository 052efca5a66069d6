//! Follows the tokens of the catalog.

use std::{sync::Arc, time::Duration};

use forebay_access::{Credential, Grant, Namespaces, Record, Scopes, SecretHash, Token, TokenId};
use forebay_store::{
    AuditId, AuditOutcome, AuditRecord, Catalog, ErrorClass, NewToken, PrincipalKind, TokenAddOutcome,
    TokenBounds, TokenMaker, TokenRow, Tokens,
};
use forebay_types::{Clock, Timestamp};
use tokio::sync::{Notify, watch};

use super::{
    sources::{Sources, UsedTokens},
    tokens::AccessError,
};
use crate::random::random_bytes;

/// How often the catalog is looked at. A token that is revoked there is of no use after this time, and calls
/// that wait end within a second of that.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long an answer may take.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// At most this many uses of tokens are noted after each look.
const NOTES: usize = 10;
/// Tokens that ended or were revoked are kept for so long.
pub const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// The name of the maker of tokens that no caller has made.
const OPERATOR: &str = "operator";

/// Follows the tokens of a catalog.
pub(crate) struct CatalogTokens {
    /// The catalog.
    catalog: Arc<dyn Catalog>,
    /// When tokens were used.
    clock: Arc<dyn Clock>,
    /// The version in use.
    known: u64,
    /// Sources of the table.
    sources: Arc<Sources>,
    /// Receives the version in use.
    told: watch::Sender<u64>,
    /// Asks for a look now.
    look: Arc<Notify>,
    /// Tokens that were used.
    used: UsedTokens,
    /// The last look failed.
    failing: bool,
}

impl CatalogTokens {
    /// Reads the tokens for the first time. Waits until the catalog answers, unless there are those of an
    /// `image` of it.
    pub async fn begin(
        catalog: Arc<dyn Catalog>,
        clock: Arc<dyn Clock>,
        sources: Arc<Sources>,
        used: UsedTokens,
        image: Option<Tokens>,
    ) -> Result<Self, AccessError> {
        let (told, look) = (watch::Sender::new(0), Arc::new(Notify::new()));
        let mut tokens = Self { catalog, clock, known: 0, sources, told, look, used, failing: false };
        if let Some(image) = image {
            tokens.take(image);
            return Ok(tokens);
        }
        loop {
            match tokens.read().await {
                Ok(()) => return Ok(tokens),
                Err(Some(fatal)) => return Err(AccessError::catalog(&fatal)),
                Err(None) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Handles by which tokens are changed: they ask for a look, and tell which version is in use here.
    pub fn handles(&self) -> (Arc<Notify>, watch::Receiver<u64>) {
        (self.look.clone(), self.told.subscribe())
    }

    /// Reads what has changed. The error is one that does not go away by itself.
    async fn read(&mut self) -> Result<(), Option<String>> {
        let answer = tokio::time::timeout(CATALOG_TIMEOUT, self.catalog.tokens(self.known)).await;
        let error = match answer {
            Ok(Ok(tokens)) if tokens.version < self.known => {
                let (known, found) = (self.known, tokens.version);
                format!("it went back from version {known} to {found}, and is not followed")
            }
            Ok(Ok(tokens)) => {
                if self.failing {
                    tracing::info!("the tokens of the catalog can be read again");
                }
                self.failing = false;
                self.take(tokens);
                return Ok(());
            }
            Ok(Err(error)) if error.class == ErrorClass::Schema => return Err(Some(error.to_string())),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {CATALOG_TIMEOUT:?}"),
        };
        self.report(&error);
        Err(None)
    }

    /// Takes these into use, if they are others than those before.
    fn take(&mut self, tokens: Tokens) {
        if let Some(rows) = tokens.rows {
            self.sources.set_catalog(rows.iter().filter_map(record).collect());
            self.known = tokens.version;
            self.told.send_replace(tokens.version);
        }
    }

    fn report(&mut self, error: &str) {
        if !self.failing {
            tracing::error!(error, "the tokens of the catalog can't be read; those before stay in use");
        }
        self.failing = true;
    }

    /// Looks from time to time, and when it is asked to.
    pub async fn follow(mut self) {
        let look = self.look.clone();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = look.notified() => {}
            }
            match self.read().await {
                Ok(()) => self.note_uses().await,
                Err(Some(error)) => self.report(&error),
                Err(None) => {}
            }
        }
    }

    /// Notes in the catalog which tokens were used in this hour. The first that fails is the last one: tokens
    /// that are revoked must not wait for notes. The next hour is noted again.
    async fn note_uses(&self) {
        let hour = hour(self.clock.wall());
        for _ in 0..NOTES {
            let Some(id) = self.used.take() else { return };
            let note = self.catalog.note_token_use(id.as_str(), hour);
            match tokio::time::timeout(CATALOG_TIMEOUT, note).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::debug!(%error, "the use of a token can't be noted");
                    return;
                }
                Err(_) => return,
            }
        }
    }
}

/// The beginning of the hour of a time.
pub fn hour(time: Timestamp) -> Timestamp {
    const HOUR: i64 = 3_600_000_000;
    Timestamp::from_micros(time.as_micros().div_euclid(HOUR) * HOUR)
}

/// A token as the table has it. `None`: its id is none, which this program never writes.
fn record(row: &TokenRow) -> Option<Record> {
    let grant = |text: &str| match text.parse::<Grant>() {
        Ok(grant) => Some(grant),
        Err(error) => {
            // A later program may know more rights. This one gives none that it does not know.
            tracing::warn!(token = row.id, %error, "a grant of a token is left out");
            None
        }
    };
    let hashes = row.older_secret.into_iter().chain([row.secret]).map(SecretHash::from_bytes).collect();
    Some(Record {
        id: TokenId::new(&row.id)?,
        name: row.name.clone(),
        hashes,
        grants: row.grants.split(' ').filter(|text| !text.is_empty()).filter_map(grant).collect(),
        ends: row.ends,
        overlap_ends: row.overlap_ends,
        revoked: row.revoked.is_some(),
        root: row.root.clone(),
    })
}

/// Writes a token with all rights into a catalog, and writes that down. `first`: only while no token has
/// the right `admin` everywhere. Returns whether it is there.
pub async fn bootstrap(
    catalog: &dyn Catalog,
    clock: &dyn Clock,
    shown: &str,
    name: &str,
    first: bool,
) -> Result<TokenAddOutcome, AccessError> {
    let token = Token::parse(shown.trim())
        .ok_or_else(|| AccessError::bootstrap("the text is no token: it has another form, or is cut"))?;
    let all = Grant { namespaces: Namespaces::All, scopes: Scopes::all() };
    let now = clock.wall();
    let row = TokenRow {
        id: token.id().to_string(),
        namespace: "*".to_owned(),
        name: name.to_owned(),
        secret: *token.hash().as_bytes(),
        older_secret: None,
        rotation: None,
        grants: all.to_string(),
        made_by: OPERATOR.to_owned(),
        made_by_id: String::new(),
        root: String::new(),
        made_at: now,
        ends: None,
        overlap_ends: None,
        revoked: None,
        last_used: None,
        is_admin: true,
    };
    let new = NewToken {
        row,
        maker: TokenMaker::Operator,
        if_no_admin_at: first.then_some(now),
        forget_before: now.minus(KEPT_FOR),
        bounds: TokenBounds::DEFAULT,
    };
    let failed = |error: forebay_store::StoreError| AccessError::catalog(&error.to_string());
    let added = catalog.add_token(&new).await.map_err(failed)?;
    if let TokenAddOutcome::Yes(_) = added {
        let random = random_bytes().map_err(|error| AccessError::bootstrap(&error.to_string()))?;
        let record = AuditRecord {
            id: AuditId::new(now, random),
            principal: OPERATOR.to_owned(),
            kind: PrincipalKind::Operator,
            token_id: String::new(),
            peer: String::new(),
            method: "CreateToken".to_owned(),
            namespace: "-".to_owned(),
            target: new.row.id.clone(),
            reason: "bootstrap".to_owned(),
            summary: format!("name={name:?} grants=[{}]", new.row.grants),
            outcome: AuditOutcome::Done,
            failure: String::new(),
            operation_id: String::new(),
            node: String::new(),
            trace_id: String::new(),
        };
        catalog.add_audit(&record).await.map_err(failed)?;
    }
    Ok(added)
}

/// Whether a credential is a token, and which.
pub(crate) fn token_of(credential: &Credential) -> Option<&TokenId> {
    match credential {
        Credential::Token { id, .. } => Some(id),
        Credential::Certificate { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_token_with_the_rights_that_are_known() {
        let row = TokenRow {
            id: "abcdefghijkl".to_owned(),
            namespace: "a".to_owned(),
            name: "n".to_owned(),
            secret: [2; 32],
            older_secret: Some([1; 32]),
            rotation: None,
            grants: "a:produce,consume a:fly b:observe".to_owned(),
            made_by: String::new(),
            made_by_id: String::new(),
            root: "rootrootroot".to_owned(),
            made_at: Timestamp::from_micros(0),
            ends: Some(Timestamp::from_micros(9)),
            overlap_ends: Some(Timestamp::from_micros(8)),
            revoked: Some(Timestamp::from_micros(7)),
            last_used: None,
            is_admin: false,
        };
        let found = record(&row).unwrap();
        assert_eq!(found.hashes, [[1; 32], [2; 32]].map(SecretHash::from_bytes), "the newest is the last");
        let grants: Vec<String> = found.grants.iter().map(ToString::to_string).collect();
        assert_eq!(grants, ["a:produce,consume", "b:observe"]);
        assert_eq!((found.ends, found.overlap_ends, found.revoked), (row.ends, row.overlap_ends, true));
        assert_eq!(found.root, row.root);
        assert_eq!(record(&TokenRow { id: "short".to_owned(), ..row }), None);
        assert_eq!(hour(Timestamp::from_micros(7_200_000_001)), Timestamp::from_micros(7_200_000_000));
    }
}
