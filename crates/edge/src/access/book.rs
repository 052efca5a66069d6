//! Changes tokens in the catalog, and waits until they are in use at this node.

use std::{sync::Arc, time::Duration};

use forebay_access::{Token, TokenId};
use forebay_engine::RETRY_AFTER;
use forebay_store::{
    Catalog, NewToken, StoreError, TokenAddOutcome, TokenBounds, TokenChange, TokenChangeOutcome, TokenMaker,
    TokenRow,
};
use forebay_types::{Clock, Namespace, Reason, Refusal, Timestamp};
use tokio::sync::{Notify, watch};

use super::catalog::KEPT_FOR;
use crate::{request_ids::reused, turns::Turns};

/// How long the catalog may take to answer.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer waits until this node uses what has changed.
const TOLD_TIMEOUT: Duration = Duration::from_secs(2);

/// Changes tokens.
#[derive(Clone)]
pub struct TokenBook {
    /// The catalog.
    pub catalog: Arc<dyn Catalog>,
    /// Asks who follows the tokens to look now.
    pub look: Arc<Notify>,
    /// The version that this node uses.
    pub told: watch::Receiver<u64>,
    /// When tokens are made and revoked.
    pub clock: Arc<dyn Clock>,
    /// Tenants that change tokens at the moment.
    pub turns: Turns,
}

impl TokenBook {
    /// The time of now.
    pub fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Tokens by id, from this one on.
    pub async fn page(&self, from: &str, limit: u32) -> Result<Vec<TokenRow>, Refusal> {
        within(self.catalog.token_page(from, limit)).await
    }

    /// One token.
    pub async fn find(&self, id: &TokenId) -> Result<Option<TokenRow>, Refusal> {
        let found = self.page(id.as_str(), 1).await?.into_iter().next();
        Ok(found.filter(|row| row.id == id.as_str()))
    }

    /// Adds a token. `is_named`: its id is that of a call, which may have been made before.
    pub async fn add(
        &self,
        caller: &Namespace,
        row: TokenRow,
        maker: TokenMaker,
        is_named: bool,
    ) -> Result<(), Refusal> {
        let _turn = self.turns.take(caller)?;
        let forget_before = self.now().minus(KEPT_FOR);
        let new = NewToken { row, maker, if_no_admin_at: None, forget_before, bounds: TokenBounds::DEFAULT };
        let full = |whose: &str, most: u64| {
            let message =
                format!("{whose} {most} tokens, which is the limit; those that ended go after 30 days");
            Err(Refusal::new(Reason::TooManyTokens, message).retry_after(RETRY_AFTER))
        };
        match within(self.catalog.add_token(&new)).await? {
            TokenAddOutcome::Yes(version) => self.wait_until_used(version).await,
            TokenAddOutcome::IdTaken if is_named => {
                let id = &new.row.id;
                return Err(reused(&format!(
                    "was used for the call that has made token {id}, whose secret is told once: rotate it to \
                     get another one, or revoke it"
                )));
            }
            TokenAddOutcome::IdTaken | TokenAddOutcome::HasAdmin => return Err(unavailable("try again")),
            TokenAddOutcome::NamespaceFull => {
                return full("the namespace has", TokenBounds::DEFAULT.per_namespace);
            }
            TokenAddOutcome::RootFull => {
                let whose = "the caller, whoever gave it its rights, and those to whom they gave some have";
                return full(whose, TokenBounds::DEFAULT.by_root.per_root);
            }
            // It has no few any more, or the cluster has more than this by now.
            TokenAddOutcome::Full => {
                let most = new.bounds.by_root.in_all_for(new.maker.is_operator(), u64::MAX);
                return full("the cluster has", most);
            }
        }
        Ok(())
    }

    /// Gives a token another secret. `rotation`: which call does so.
    pub async fn rotate(
        &self,
        caller: &Namespace,
        row: &TokenRow,
        token: &Token,
        rotation: Option<[u8; 32]>,
        overlap_ends: Option<Timestamp>,
    ) -> Result<(), Refusal> {
        let (from, secret) = (row.secret, *token.hash().as_bytes());
        let change = TokenChange::Rotate { from, secret, rotation, overlap_ends };
        self.change(caller, &row.id, change).await.map(drop)
    }

    /// Lets a token be of no use any more, and what descends from it if that is asked for. Returns how many
    /// tokens that are of use descend from it, or did until now.
    pub async fn revoke(
        &self,
        caller: &Namespace,
        row: &TokenRow,
        with_descendants: bool,
    ) -> Result<u32, Refusal> {
        self.change(caller, &row.id, TokenChange::Revoke { at: self.now(), with_descendants }).await
    }

    /// Returns how many tokens descend from one that is revoked.
    async fn change(&self, caller: &Namespace, id: &str, change: TokenChange) -> Result<u32, Refusal> {
        let _turn = self.turns.take(caller)?;
        match within(self.catalog.change_token(id, &change)).await? {
            TokenChangeOutcome::Yes(version) => self.wait_until_used(version).await,
            TokenChangeOutcome::Revoked { version, descendants } => {
                self.wait_until_used(version).await;
                return Ok(descendants);
            }
            TokenChangeOutcome::NoToken => return Err(not_found(id)),
            TokenChangeOutcome::Stale => {
                return Err(unavailable("the token is changed by others at the moment"));
            }
            TokenChangeOutcome::LastAdmin => {
                let message = "it is the last token of the catalog with the right admin in all \
                               namespaces (*): make another one first";
                return Err(Refusal::new(Reason::LastAdmin, message));
            }
        }
        Ok(0)
    }

    /// Waits until this node uses a version, but not for long: what is done is done.
    async fn wait_until_used(&self, version: u64) {
        let mut told = self.told.clone();
        if *told.borrow_and_update() >= version {
            return;
        }
        self.look.notify_one();
        let _ = tokio::time::timeout(TOLD_TIMEOUT, told.wait_for(|known| *known >= version)).await;
    }
}

/// There is no such token, as far as the caller may know.
pub fn not_found(id: &str) -> Refusal {
    Refusal::new(Reason::TokenNotFound, format!("there is no token {id} in this namespace"))
}

/// The answer of the catalog, if it comes in time.
async fn within<T>(answer: impl Future<Output = Result<T, StoreError>>) -> Result<T, Refusal> {
    match tokio::time::timeout(CATALOG_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => {
            // The catalog's error is for operators.
            tracing::warn!(%error, "tokens can't be read or changed in the catalog");
            Err(unavailable("it does not answer, or its schema is older than this program"))
        }
        Err(_) => Err(unavailable(&format!("no answer within {CATALOG_TIMEOUT:?}"))),
    }
}

fn unavailable(why: &str) -> Refusal {
    Refusal::new(Reason::CatalogUnavailable, format!("the catalog: {why}; it may or may not be done"))
        .retry_after(RETRY_AFTER)
}
