//! The visitor, and its rights.

use forebay_proto::v1::{Grant, PrincipalKind, WhoAmIRequest};
use maud::{Markup, html};

use super::super::super::{asked::PageRequest, texts::time, trouble::Trouble};

/// Makes the section.
pub async fn make(asked: &PageRequest) -> Result<Markup, Trouble> {
    let who = asked.ask(WhoAmIRequest {}).await?;
    Ok(html! {
        h2 { "You" }
        dl.pairs {
            dt { "known by" } dd { (kind(who.kind())) }
            @if !who.name.is_empty() { dt { "name" } dd { bdi { (who.name) } } }
            @if !who.id.is_empty() { dt { "id" } dd.id { (who.id) } }
            dt { "rights" } dd { (rights(&who.grants)) }
            dt { "end" }
            dd { @if who.ends_at.is_some() { (time(who.ends_at, asked.now())) } @else { "never" } }
        }
    })
}

/// How it is known who asks.
pub fn kind(kind: PrincipalKind) -> &'static str {
    match kind {
        PrincipalKind::Anyone => "nothing: everybody may do everything",
        PrincipalKind::Token => "a token",
        PrincipalKind::Certificate => "a certificate",
        PrincipalKind::Operator => "the catalog, where it wrote",
        PrincipalKind::Unspecified => "something that this program does not know",
    }
}

/// Rights, one grant a line.
pub fn rights(grants: &[Grant]) -> Markup {
    html! {
        @for (place, grant) in grants.iter().enumerate() {
            @if place > 0 { br; }
            code { (grant.namespaces) ":" (grant.scopes.join(",")) }
        }
        @if grants.is_empty() { "none" }
    }
}
