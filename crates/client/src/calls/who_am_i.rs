//! WhoAmI: as whom the servers know this client, and what it may do.

use forebay_proto::v1;
use forebay_types::Timestamp;

use super::audit::kind_name;
use crate::{client::Client, error::Error};

/// As whom the servers know a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// `anyone`, where there is no access control, `token` or `certificate`.
    pub kind: &'static str,
    /// The id of the token, or the name in the certificate.
    pub id: String,
    /// The name of the token, for people.
    pub name: String,
    /// What the client may do.
    pub grants: Vec<Grant>,
    /// When its rights end. `None`: never.
    pub ends_at: Option<Timestamp>,
}

/// Rights in namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The name of a namespace, the beginning of names and a `*`, or `*` for all.
    pub namespaces: String,
    /// `produce`, `consume`, `observe`, `inspect`, `operate`, `admin`, `metrics`.
    pub scopes: Vec<String>,
}

impl Client {
    /// As whom a server knows this client, and what it may do.
    pub async fn who_am_i(&self) -> Result<Caller, Error> {
        let answer = self.ask(|mut admin| async move { admin.who_am_i(v1::WhoAmIRequest {}).await }).await?;
        let kind = kind_name(answer.kind());
        let v1::WhoAmIResponse { id, name, grants, ends_at, .. } = answer;
        let grant = |v1::Grant { namespaces, scopes }| Grant { namespaces, scopes };
        let ends_at = ends_at.map(|at| {
            let micros = at.seconds.saturating_mul(1_000_000).saturating_add(i64::from(at.nanos) / 1_000);
            Timestamp::from_micros(micros)
        });
        Ok(Caller { kind, id, name, grants: grants.into_iter().map(grant).collect(), ends_at })
    }
}
