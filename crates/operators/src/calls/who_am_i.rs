//! `WhoAmI`: who makes the call, and what it may do.

use forebay_access::Kind;
use forebay_proto::{
    time::to_timestamp,
    v1::{Grant, PrincipalKind, WhoAmIRequest, WhoAmIResponse},
};
use forebay_types::Refusal;

use super::{context::Admin, ctx::Ctx};

/// Serves the call.
pub async fn who_am_i(_: &Admin, ctx: &Ctx, _: WhoAmIRequest) -> Result<WhoAmIResponse, Refusal> {
    let caller = &*ctx.caller;
    let kind = match caller.kind {
        Kind::Anyone => PrincipalKind::Anyone,
        Kind::Token => PrincipalKind::Token,
        Kind::Certificate => PrincipalKind::Certificate,
    };
    let grants = caller.grants.iter().map(|grant| Grant {
        namespaces: grant.namespaces.to_string(),
        scopes: grant.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
    });
    Ok(WhoAmIResponse {
        kind: kind.into(),
        id: caller.id.clone(),
        name: caller.name.clone(),
        grants: grants.collect(),
        ends_at: caller.ends.map(to_timestamp),
    })
}
