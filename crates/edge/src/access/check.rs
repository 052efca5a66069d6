//! Finds who makes a request, and whether it may. Nothing is looked up but the credential.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use forebay_access::{Credential, Denial, Identity, Kind, Needs, SecretHash, Table, TokenId, decide};
use forebay_types::{Clock, Monotonic, Reason, Refusal, Timestamp};
use http::HeaderMap;
use tokio::sync::watch;

use super::{
    bearer::{self, PresentedCredential},
    catalog::token_of,
    follow::{TokensState, Writer},
    settings::AccessSettings,
    sources::UsedTokens,
    tokens::{self, AccessError},
};
use crate::tls::Principal;

/// The message to callers whose credentials are not accepted, whatever is wrong with them.
const BAD: &str = "the credentials are not valid";
/// The message to callers that show no credential.
const NONE: &str = "credentials are missing: send `authorization: Bearer` and a token";
/// The log has one line of refused credentials in this time.
const LOG_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// Decides who may do what. Without `[access]` everybody may do everything.
pub struct Access {
    /// All credentials. `None`: there is no access control.
    table: Option<watch::Receiver<Arc<Table>>>,
    /// Whether the file of tokens can be used.
    state: TokensState,
    /// Receives which tokens were used.
    used: UsedTokens,
    /// Whoever it is, where there is no access control.
    anyone: Arc<Identity>,
    /// Tells which tokens have ended.
    clock: Arc<dyn Clock>,
    /// When refused credentials were last written to the log, and how many were since.
    logged: Mutex<(Option<Monotonic>, u64)>,
}

/// Caller that makes a request.
#[derive(Debug, Clone)]
pub struct AuthenticatedCaller {
    /// The credential that it has shown. `None`: none is asked for.
    credential: Option<Arc<Credential>>,
    /// Its identity, with its rights.
    pub identity: Arc<Identity>,
}

impl Access {
    /// By the table of a writer. `None`: there is no access control.
    pub fn new(writer: Option<&Writer>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self {
            table: writer.map(Writer::subscribe),
            state: writer.map(Writer::state).unwrap_or_default(),
            used: writer.map(Writer::used).unwrap_or_default(),
            anyone: Arc::new(Identity::anyone()),
            clock,
            logged: Mutex::default(),
        })
    }

    /// Whether the file of tokens can be used.
    pub fn check(settings: &AccessSettings) -> Result<(), AccessError> {
        tokens::records(settings, &tokens::read(settings)?).map(drop)
    }

    /// Everybody may do everything.
    #[cfg(any(test, feature = "testing"))]
    pub fn open() -> Arc<Self> {
        Self::new(None, Arc::new(forebay_types::SystemClock::default()))
    }

    /// Whether requests need a credential.
    pub fn is_on(&self) -> bool {
        self.table.is_some()
    }

    /// Why what the file of tokens holds now is not in use. `None`: it is.
    pub fn trouble(&self) -> Option<AccessError> {
        self.state.trouble()
    }

    /// When the first of the tokens ends that are of use in a namespace, by that.
    pub fn token_ends(&self) -> BTreeMap<String, Timestamp> {
        let table = self.table.as_ref().map(|table| table.borrow().clone());
        table.map(|table| table.ends(self.clock.wall())).unwrap_or_default()
    }

    /// Finds the caller of a request. A token decides, and where none is shown the certificate of the
    /// connection. `from`: where the caller is. `port`: as metrics name it.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        principal: &Principal,
        from: impl fmt::Display,
        port: &'static str,
    ) -> Result<AuthenticatedCaller, Refusal> {
        let Some(table) = &self.table else {
            if let Principal::Certificate { ends, .. } = principal
                && *ends <= self.clock.wall()
            {
                self.report("ended", &from.to_string(), port);
                return Err(bad());
            }
            return Ok(AuthenticatedCaller { credential: None, identity: self.anyone.clone() });
        };
        let credential = match (bearer::shown(headers), principal) {
            (PresentedCredential::Token(text), _) => Credential::of_token(text).ok_or("malformed"),
            (PresentedCredential::Nothing, Principal::Certificate { name, ends }) => {
                Ok(Credential::Certificate { name: name.to_string(), ends: *ends })
            }
            (PresentedCredential::Nothing, Principal::Unknown) => Err("none"),
            (PresentedCredential::Other, _) => Err("malformed"),
            (PresentedCredential::Several, _) => Err("repeated"),
        };
        let found = credential.and_then(|credential| self.find(&table.borrow(), credential));
        found.map_err(|why| {
            self.report(why, &from.to_string(), port);
            if why == "none" { none() } else { bad() }
        })
    }

    /// Whose a credential is. The error says what is wrong with it, for operators.
    fn find(&self, table: &Table, credential: Credential) -> Result<AuthenticatedCaller, &'static str> {
        let now = self.clock.wall();
        let identity = table.authenticate(&credential, now).map_err(|failed| failed.as_str())?;
        if let Some(id) = token_of(&credential).filter(|id| table.is_first_use(id, now)) {
            self.used.note(id.clone());
        }
        Ok(AuthenticatedCaller { credential: Some(Arc::new(credential)), identity })
    }

    /// Finds the caller that shows a token at the login. The error says what is wrong with it, for operators.
    /// Where nothing is asked for, no token is known.
    pub fn of_token(&self, text: &str) -> Result<(TokenId, SecretHash, AuthenticatedCaller), &'static str> {
        let table = self.table.as_ref().ok_or("unknown")?;
        let credential = Credential::of_token(text).ok_or("malformed")?;
        let found = self.find(&table.borrow(), credential.clone())?;
        match credential {
            Credential::Token { id, hash } => Ok((id, hash, found)),
            Credential::Certificate { .. } => Err("malformed"),
        }
    }

    /// Finds the caller that has logged in with the secret of a token. `None`: the token is of no use any
    /// more.
    pub fn of_session(&self, id: TokenId, hash: SecretHash) -> Option<AuthenticatedCaller> {
        let table = self.table.as_ref()?.borrow();
        self.find(&table, Credential::Token { id, hash }).ok()
    }

    /// The same caller as of now: its rights may have changed or ended since.
    pub fn again(&self, caller: &AuthenticatedCaller) -> Result<AuthenticatedCaller, Refusal> {
        let (Some(table), Some(credential)) = (&self.table, &caller.credential) else {
            return Ok(caller.clone());
        };
        let identity = table.borrow().authenticate(credential, self.clock.wall()).map_err(|_| bad())?;
        Ok(AuthenticatedCaller { credential: caller.credential.clone(), identity })
    }

    /// Refused credentials are counted. The log has a line a second at most, so that they don't fill the
    /// disk. `client`: where they come from.
    pub fn report(&self, why: &'static str, client: &dyn fmt::Display, port: &'static str) {
        metrics::counter!("forebay_auth_failures_total", "listener" => port, "reason" => why).increment(1);
        let now = self.clock.monotonic();
        // A panic while the lock is held leaves valid values.
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, more) = *logged;
        if last.is_some_and(|last| now.since(last) < LOG_EVERY) {
            logged.1 += 1;
            return;
        }
        *logged = (Some(now), 0);
        drop(logged);
        tracing::warn!(
            reason = why,
            %client,
            "credentials at the {port} port are not accepted ({why}); {more} more since the last such line"
        );
    }
}

#[cfg(any(test, feature = "testing"))]
impl AuthenticatedCaller {
    /// Somebody with these grants.
    pub fn of_grants(grants: &[&str]) -> Self {
        let grants = grants.iter().map(|grant| grant.parse().unwrap()).collect();
        let (kind, id) = (Kind::Token, "a".to_owned());
        let identity = Identity { kind, id, grants, ..Identity::anyone() };
        Self { credential: None, identity: Arc::new(identity) }
    }
}

impl AuthenticatedCaller {
    /// The root that pays for what the caller takes of what all share. `None`: nobody is known.
    pub fn payer(&self) -> Option<Arc<str>> {
        (self.identity.kind != Kind::Anyone).then(|| self.identity.root().into())
    }

    /// Whether the caller may do what a request asks for. `namespace`: what the request names; empty if it
    /// names none.
    pub fn permit(&self, needs: Needs, namespace: &str) -> Result<(), Refusal> {
        decide(&self.identity, needs, namespace).map_err(|denied| match denied {
            Denial::WrongNamespace => {
                let message = "the credentials have no rights in this namespace";
                let refusal = Refusal::new(Reason::WrongNamespace, message);
                Refusal { field: Some("namespace".to_owned()), ..refusal }
            }
            Denial::ScopeMissing(scope) => {
                let scope = scope.as_str();
                let message = format!("the credentials do not have the right {scope} in this namespace");
                Refusal::scope_missing(scope, message)
            }
            Denial::ScopeMissingEverywhere(scope) => {
                let scope = scope.as_str();
                let message = format!("the credentials do not have the right {scope} in all namespaces (*)");
                Refusal::scope_missing(scope, message)
            }
        })
    }
}

fn bad() -> Refusal {
    Refusal::new(Reason::BadCredentials, BAD)
}

fn none() -> Refusal {
    Refusal::new(Reason::NoCredentials, NONE)
}
