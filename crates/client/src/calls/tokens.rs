//! CreateToken, ListTokens, RotateToken and RevokeToken.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use super::who_am_i::Grant;
use crate::{
    client::Client,
    durations::{time_from_proto, to_proto},
    error::Error,
};

/// A token of the catalog, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenInfo {
    /// Names it.
    pub id: String,
    /// All of its grants lie in it: a namespace, the beginning of names and a `*`, or `*` for all.
    pub namespace: String,
    /// For people.
    pub name: String,
    /// What its holder may do.
    pub grants: Vec<Grant>,
    /// Who made it.
    pub made_by: String,
    /// The id of the token that made it. Empty: none did, or it is not known.
    pub made_by_id: String,
    /// When it was made.
    pub made_at: Option<Timestamp>,
    /// From when on it is of no use. `None`: never.
    pub ends_at: Option<Timestamp>,
    /// It was rotated, and the secret before holds until then.
    pub overlap_ends_at: Option<Timestamp>,
    /// Since when it is revoked. `None`: it is not.
    pub revoked_at: Option<Timestamp>,
    /// The hour in which it was last used. `None`: not yet.
    pub last_used_at: Option<Timestamp>,
}

/// A token that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Where its rights are: a namespace, the beginning of names and a `*`, or `-` for all.
    pub namespace: String,
    /// Who gets it, for people.
    pub name: String,
    /// What its holder may do.
    pub grants: Vec<Grant>,
    /// For how long it is of use. `None`: 365 days.
    pub lifetime: Option<Duration>,
    /// Why, for the audit record.
    pub reason: String,
}

/// A token with its text, which is told once.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenWithSecret {
    /// What is kept of it.
    pub token: TokenInfo,
    /// Its text, for its holder.
    pub secret: String,
}

/// Without the secret.
impl std::fmt::Debug for TokenWithSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenWithSecret").field("token", &self.token).finish_non_exhaustive()
    }
}

/// A token that is revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// What is kept of it.
    pub token: TokenInfo,
    /// Tokens that descend from it and were of use until now. If that was not asked for they still hold.
    pub descendants: u32,
}

/// A page of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPage {
    /// By id.
    pub tokens: Vec<TokenInfo>,
    /// The token of the next page. `None`: this is the last one.
    pub next: Option<String>,
}

impl Client {
    /// Makes a token. If the answer of a call is lost the error is `REQUEST_ID_REUSED`, and names the token:
    /// its secret is told once, so rotate it, or revoke it and make another one.
    pub async fn create_token(&self, new: NewToken) -> Result<TokenWithSecret, Error> {
        let grant = |Grant { namespaces, scopes }| v1::Grant { namespaces, scopes };
        let request = v1::CreateTokenRequest {
            namespace: new.namespace,
            name: new.name,
            grants: new.grants.into_iter().map(grant).collect(),
            lifetime: new.lifetime.map(to_proto),
            reason: new.reason,
            request_id: self.rng.request_id(),
        };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.create_token(request).await }
            })
            .await?;
        Ok(TokenWithSecret { token: token(answer.token.unwrap_or_default()), secret: answer.secret })
    }

    /// Lists the tokens whose rights lie in a namespace, by id. `page_size` 0: 100.
    pub async fn tokens(
        &self,
        namespace: &str,
        page_size: u32,
        page_token: String,
    ) -> Result<TokenPage, Error> {
        let request = v1::ListTokensRequest { namespace: namespace.to_owned(), page_size, page_token };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.list_tokens(request).await }
            })
            .await?;
        let next = Some(answer.next_page_token).filter(|token| !token.is_empty());
        Ok(TokenPage { tokens: answer.tokens.into_iter().map(token).collect(), next })
    }

    /// Gives a token another secret. The one before holds for so long too.
    pub async fn rotate_token(
        &self,
        namespace: &str,
        id: &str,
        overlap: Duration,
        reason: &str,
    ) -> Result<TokenWithSecret, Error> {
        let request = v1::RotateTokenRequest {
            namespace: namespace.to_owned(),
            token_id: id.to_owned(),
            overlap: Some(to_proto(overlap)),
            reason: reason.to_owned(),
            request_id: self.rng.request_id(),
        };
        // Asked again, it would be rotated again, and the first new secret would be lost.
        let answer = self.ask_once(|mut admin| async move { admin.rotate_token(request).await }).await?;
        Ok(TokenWithSecret { token: token(answer.token.unwrap_or_default()), secret: answer.secret })
    }

    /// Lets a token be of no use any more: at every node within two seconds. `with_descendants`: and those
    /// that it made, those that these made, and so on.
    pub async fn revoke_token(
        &self,
        namespace: &str,
        id: &str,
        reason: &str,
        with_descendants: bool,
    ) -> Result<RevokedToken, Error> {
        let (namespace, token_id) = (namespace.to_owned(), id.to_owned());
        let (reason, request_id) = (reason.to_owned(), self.rng.request_id());
        let request = v1::RevokeTokenRequest { namespace, token_id, reason, request_id, with_descendants };
        let answer = self
            .ask(|mut admin| {
                let request = request.clone();
                async move { admin.revoke_token(request).await }
            })
            .await?;
        let descendants = answer.descendants;
        Ok(RevokedToken { token: token(answer.token.unwrap_or_default()), descendants })
    }
}

fn token(it: v1::Token) -> TokenInfo {
    let grant = |v1::Grant { namespaces, scopes }| Grant { namespaces, scopes };
    TokenInfo {
        id: it.id,
        namespace: it.namespace,
        name: it.name,
        grants: it.grants.into_iter().map(grant).collect(),
        made_by: it.made_by,
        made_by_id: it.made_by_id,
        made_at: it.made_at.map(time_from_proto),
        ends_at: it.ends_at.map(time_from_proto),
        overlap_ends_at: it.overlap_ends_at.map(time_from_proto),
        revoked_at: it.revoked_at.map(time_from_proto),
        last_used_at: it.last_used_at.map(time_from_proto),
    }
}
