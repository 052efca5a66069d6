//! CreateToken, ListTokens, RotateToken and RevokeToken.
//!
//! That the caller has `admin` in the namespaces that the request names has been decided. All rights of a
//! token lie in its namespaces. So who may change it follows from them alone.

use std::time::Duration;

use forebay_access::{
    Grant, ID_BYTES, Identity, Kind, Namespaces, RANDOM_BYTES, Scope, Scopes, Token, TokenId,
};
use forebay_edge::{
    access::{TokenBook, token_not_found},
    audit::{AuditNote, principal_name},
    random::random_bytes,
    request_ids::{id_of, reused, rotation_of},
    rpc::{
        fields,
        page_token::{List, not_of_this_list},
        rules::ALL_NAMESPACES,
    },
};
use forebay_engine::RETRY_AFTER;
use forebay_proto::{time::to_timestamp, v1};
use forebay_store::{TokenMaker, TokenRow};
use forebay_types::{Namespace, Reason, Refusal};
use prost::Message as _;

use super::{
    audit::namespace,
    context::{Admin, page_rows},
    ctx::Ctx,
    token_end,
};

/// The longest name.
const NAME_BYTES: usize = 200;
/// The most grants.
const GRANTS_MAX: usize = 64;
/// Their longest text.
const GRANTS_BYTES: usize = 4 << 10;
/// The longest overlap.
const OVERLAP_MAX: Duration = Duration::from_hours(30 * 24);
/// Tokens that are read at a time.
const CHUNK: u32 = 200;
/// Bytes that they may take, and that a page may take.
const CHUNK_BYTES: usize = (CHUNK as usize) * (5 << 10);
/// Encoded bytes of a page.
const PAGE_BYTES: usize = 3 << 20;

/// Serves CreateToken.
pub async fn create(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::CreateTokenRequest,
) -> Result<v1::CreateTokenResponse, Refusal> {
    let (named, within) = named(ctx, &request.namespace)?;
    if request.name.is_empty() {
        return Err(Refusal::field("name", "must say who gets the token"));
    }
    fields::bytes("name", request.name.len(), NAME_BYTES)?;
    let lifetime = token_end::lifetime(&request)?;
    fields::bytes("request_id", request.request_id.len(), admin.rules.limits.key_bytes)?;
    let grants = grants(&request.grants, &within)?;
    may_give(&ctx.caller, &grants)?;
    let book = book(admin)?;
    let mut random: [u8; RANDOM_BYTES] = random_bytes().map_err(|error| no_random(&error.to_string()))?;
    // Made twice under one request id, it would be the same token, so that the second is refused.
    let is_named = !request.request_id.is_empty();
    if is_named {
        random[..ID_BYTES].copy_from_slice(&id_of(&ctx.caller, &request.request_id)[..ID_BYTES]);
    }
    let token = Token::of_random(&random);
    let (now, made_by) = (book.now(), principal_name(&ctx.caller));
    let ends = token_end::of_new(&ctx.caller, lifetime, now)?;
    let made_by_id = if ctx.caller.kind == Kind::Token { ctx.caller.id.clone() } else { String::new() };
    let row = TokenRow {
        id: token.id().to_string(),
        namespace: within.to_string(),
        name: request.name,
        secret: *token.hash().as_bytes(),
        older_secret: None,
        grants: text_of(&grants),
        made_by: made_by[..made_by.floor_char_boundary(255)].to_owned(),
        made_by_id,
        root: String::new(),
        made_at: now,
        ends: Some(ends),
        rotation: None,
        overlap_ends: None,
        revoked: None,
        last_used: None,
        is_admin: grants.iter().any(|it| it.namespaces == Namespaces::All && it.scopes.has(Scope::Admin)),
    };
    book.add(&named, row.clone(), maker(&ctx.caller), is_named).await?;
    ctx.note(AuditNote { target: row.id.clone(), ..AuditNote::default() });
    Ok(v1::CreateTokenResponse { token: Some(message(&row)), secret: token.reveal() })
}

/// Among whose tokens a new one counts.
fn maker(caller: &Identity) -> TokenMaker {
    match caller.kind {
        _ if caller.may_everywhere(Scope::Admin) => TokenMaker::Operator,
        Kind::Token => TokenMaker::Token(caller.id.clone()),
        Kind::Certificate | Kind::Anyone => TokenMaker::Other(caller.root_in_catalog().to_owned()),
    }
}

/// Serves ListTokens.
pub async fn list(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::ListTokensRequest,
) -> Result<v1::ListTokensResponse, Refusal> {
    let (named, within) = named(ctx, &request.namespace)?;
    let list = List { tokens: &admin.tokens, name: "ListTokens", namespace: &request.namespace, query: "" };
    let behind = list.position(&request.page_token)?.unwrap_or_default();
    let mut from = String::from_utf8(behind).map_err(|_| not_of_this_list())?;
    let book = book(admin)?;
    let _bytes = admin.records.take(&named, CHUNK_BYTES + PAGE_BYTES).map_err(|_| {
        Refusal::new(
            Reason::Overloaded,
            "too many lists are read from the catalog at the moment; retry later",
        )
        .retry_after(RETRY_AFTER)
    })?;
    let rows = page_rows(request.page_size);
    let (mut tokens, mut bytes) = (Vec::new(), 0);
    let next = loop {
        let chunk = book.page(&from, CHUNK).await?;
        let is_last = chunk.len() < CHUNK as usize;
        let mut full = false;
        for row in &chunk {
            if tokens.len() == rows || bytes >= PAGE_BYTES {
                full = true;
                break;
            }
            // The one behind it.
            from = format!("{}\0", row.id);
            if lies_in(row, &within) {
                let token = message(row);
                bytes += token.encoded_len();
                tokens.push(token);
            }
        }
        match (full, is_last) {
            (true, _) => break list.token(from.as_bytes()),
            (false, true) => break String::new(),
            (false, false) => {}
        }
    };
    ctx.call.reserve_answer(bytes)?;
    Ok(v1::ListTokensResponse { tokens, next_page_token: next })
}

/// Serves RotateToken.
pub async fn rotate(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::RotateTokenRequest,
) -> Result<v1::RotateTokenResponse, Refusal> {
    let (named, within) = named(ctx, &request.namespace)?;
    let id = id(&request.token_id)?;
    let overlap = request.overlap.as_ref().map(|span| fields::duration("overlap", span)).transpose()?;
    let overlap = overlap.filter(|span| !span.is_zero());
    if overlap.is_some_and(|span| span > OVERLAP_MAX) {
        return Err(Refusal::field("overlap", "must be at most 30 days"));
    }
    fields::bytes("request_id", request.request_id.len(), admin.rules.limits.key_bytes)?;
    let book = book(admin)?;
    let row = found(book, &id, &within).await?;
    if row.revoked.is_some() {
        return Err(Refusal::new(Reason::TokenNotFound, format!("token {id} is revoked")));
    }
    let rotation_to = |secret: &[u8; 32]| rotation_of(&ctx.caller, &request.request_id, secret);
    if row.rotation.is_some() && row.rotation == rotation_to(&row.secret) {
        let why = "was used for the call that has given the token its secret, which is told once: rotate it \
                   again to get another one";
        return Err(reused(why));
    }
    // Whoever gets the secret gets the rights.
    let grants: Result<Vec<Grant>, _> = row.grants.split(' ').map(str::parse).collect();
    let unread = "the token has rights that this program does not know: rotate it at a newer node";
    may_give(&ctx.caller, &grants.map_err(|_| Refusal::new(Reason::NotAllowed, unread))?)?;
    token_end::may_rotate(&ctx.caller, row.ends)?;
    let now = book.now();
    if overlap.is_some() && row.older_secret.is_some() && row.overlap_ends.is_some_and(|ends| ends > now) {
        let why =
            "the token was rotated before, and both of its secrets hold; wait, or let the older one end (0)";
        return Err(Refusal::field("overlap", why));
    }
    let random = random_bytes().map_err(|error| no_random(&error.to_string()))?;
    let token = Token::with_secret(id, &random);
    let overlap_ends = overlap.map(|span| now.plus(span));
    let rotation = rotation_to(token.hash().as_bytes());
    book.rotate(&named, &row, &token, rotation, overlap_ends).await?;
    let row = TokenRow { older_secret: overlap.map(|_| row.secret), overlap_ends, ..row };
    Ok(v1::RotateTokenResponse { token: Some(message(&row)), secret: token.reveal() })
}

/// Serves RevokeToken.
pub async fn revoke(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::RevokeTokenRequest,
) -> Result<v1::RevokeTokenResponse, Refusal> {
    let (named, within) = named(ctx, &request.namespace)?;
    let id = id(&request.token_id)?;
    let book = book(admin)?;
    let row = found(book, &id, &within).await?;
    let descendants = book.revoke(&named, &row, request.with_descendants).await?;
    let revoked = row.revoked.or(Some(book.now()));
    Ok(v1::RevokeTokenResponse { token: Some(message(&TokenRow { revoked, ..row })), descendants })
}

/// The namespaces that a request names: as a tenant whose call it is, and as a set.
fn named(ctx: &Ctx, text: &str) -> Result<(Namespace, Namespaces), Refusal> {
    let named = namespace(text)?;
    ctx.call.request().count_for(&named)?;
    let within = if text == ALL_NAMESPACES { Ok(Namespaces::All) } else { Namespaces::read(text) };
    Ok((named, within.map_err(|why| Refusal::field("namespace", why))?))
}

fn id(text: &str) -> Result<TokenId, Refusal> {
    TokenId::new(text).ok_or_else(|| Refusal::field("token_id", "must be 12 letters and digits"))
}

/// A token that lies in these namespaces. Of others it is not said whether they are there.
async fn found(book: &TokenBook, id: &TokenId, within: &Namespaces) -> Result<TokenRow, Refusal> {
    let row = book.find(id).await?.filter(|row| lies_in(row, within));
    row.ok_or_else(|| token_not_found(id.as_str()))
}

fn lies_in(row: &TokenRow, within: &Namespaces) -> bool {
    Namespaces::read(&row.namespace).is_ok_and(|own| within.cover(&own))
}

/// The grants of a request, all of which lie in these namespaces.
fn grants(asked: &[v1::Grant], within: &Namespaces) -> Result<Vec<Grant>, Refusal> {
    if asked.is_empty() {
        return Err(Refusal::field("grants", "must give a right at least"));
    }
    fields::members("grants", asked.len(), GRANTS_MAX)?;
    let mut grants = Vec::new();
    for (index, grant) in asked.iter().enumerate() {
        let namespaces = Namespaces::read(&grant.namespaces)
            .map_err(|why| Refusal::field(format!("grants[{index}].namespaces"), why))?;
        if !within.cover(&namespaces) {
            let message = format!("must lie in the namespaces of the request, {within}");
            return Err(Refusal::field(format!("grants[{index}].namespaces"), message));
        }
        let scope = |name: &String| {
            Scope::from_name(name).ok_or_else(|| {
                let message = format!("there is no right {name:?}; there are {}", Scopes::all());
                Refusal::field(format!("grants[{index}].scopes"), message)
            })
        };
        if grant.scopes.is_empty() {
            return Err(Refusal::field(format!("grants[{index}].scopes"), "must name a right at least"));
        }
        let scopes = grant.scopes.iter().map(scope).collect::<Result<Scopes, Refusal>>()?;
        grants.push(Grant { namespaces, scopes });
    }
    fields::bytes("grants", text_of(&grants).len(), GRANTS_BYTES)?;
    Ok(grants)
}

fn text_of(grants: &[Grant]) -> String {
    grants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Nobody gives away a right that it does not have.
fn may_give(caller: &Identity, grants: &[Grant]) -> Result<(), Refusal> {
    for grant in grants {
        if let Some(missing) = grant.scopes.iter().find(|scope| !caller.may_give(*scope, &grant.namespaces)) {
            let (scope, where_) = (missing.as_str(), &grant.namespaces);
            let message =
                format!("the credentials do not have the right {scope} in {where_}, and can't give it");
            return Err(Refusal::scope_missing(scope, message));
        }
    }
    Ok(())
}

fn book(admin: &Admin) -> Result<&TokenBook, Refusal> {
    admin.token_book.as_ref().ok_or_else(|| {
        let message = "this node accepts no tokens of its catalog: set catalog_tokens = true in [access]";
        Refusal::new(Reason::CatalogTokensOff, message)
    })
}

fn no_random(error: &str) -> Refusal {
    Refusal::new(Reason::Overloaded, error).retry_after(RETRY_AFTER)
}

fn message(row: &TokenRow) -> v1::Token {
    let grant = |text: &str| {
        // Of a later program there may be rights that this one does not know.
        let (namespaces, scopes) = text.rsplit_once(':')?;
        let scopes = scopes.split(',').map(str::to_owned).collect();
        Some(v1::Grant { namespaces: namespaces.to_owned(), scopes })
    };
    v1::Token {
        id: row.id.clone(),
        namespace: row.namespace.clone(),
        name: row.name.clone(),
        grants: row.grants.split(' ').filter_map(grant).collect(),
        made_by: row.made_by.clone(),
        made_by_id: row.made_by_id.clone(),
        made_at: Some(to_timestamp(row.made_at)),
        ends_at: row.ends.map(to_timestamp),
        overlap_ends_at: row.overlap_ends.map(to_timestamp),
        revoked_at: row.revoked.map(to_timestamp),
        last_used_at: row.last_used.map(to_timestamp),
    }
}

#[cfg(test)]
mod tests {
    use forebay_access::Kind;

    use super::*;

    fn asked(namespaces: &str, scopes: &[&str]) -> v1::Grant {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        v1::Grant { namespaces: namespaces.to_owned(), scopes }
    }

    #[test]
    fn rights_lie_in_the_namespaces_that_are_named() {
        let field = |within: &str, asked: &[v1::Grant]| {
            let within = Namespaces::read(within).unwrap();
            grants(asked, &within).map(|grants| text_of(&grants)).map_err(|refusal| refusal.field.unwrap())
        };
        let good = [asked("team-a", &["produce", "consume"]), asked("team-*", &["observe"])];
        assert_eq!(field("team-*", &good), Ok("team-a:produce,consume team-*:observe".to_owned()));
        assert_eq!(field("*", &[asked("*", &["admin"])]), Ok("*:admin".to_owned()));
        for (within, asked, wrong) in [
            ("team-a", good[1].clone(), "grants[0].namespaces"),
            ("team-*", asked("*", &["observe"]), "grants[0].namespaces"),
            ("team-*", asked("other", &["observe"]), "grants[0].namespaces"),
            ("a", asked("a b", &["observe"]), "grants[0].namespaces"),
            ("a", asked("a", &["fly"]), "grants[0].scopes"),
            ("a", asked("a", &[]), "grants[0].scopes"),
        ] {
            assert_eq!(field(within, &[asked]), Err(wrong.to_owned()));
        }
        assert_eq!(field("a", &[]), Err("grants".to_owned()));
        let long = vec![asked(&"a".repeat(200), &["produce"]); 40];
        assert_eq!(field("*", &long), Err("grants".to_owned()));
    }

    #[test]
    fn nobody_gives_away_what_it_does_not_have() {
        let caller = |grants: &[&str]| {
            let grants = grants.iter().map(|text| text.parse().unwrap()).collect();
            Identity { kind: Kind::Token, grants, ..Identity::anyone() }
        };
        let gives = |own: &[&str], given: &str| may_give(&caller(own), &[given.parse().unwrap()]).is_ok();
        assert!(gives(&["team-*:admin,produce"], "team-a:produce"));
        assert!(gives(&["a:admin", "a:produce"], "a:admin,produce"));
        assert!(gives(&["*:all"], "*:all"));
        assert!(!gives(&["team-*:admin"], "team-a:produce"), "admin does not include it");
        assert!(!gives(&["team-a:all"], "team-*:produce"));
        assert!(!gives(&["a:all", "*:observe"], "*:admin"));
        assert!(!gives(&["a*:all", "b*:all"], "*:observe"));
    }
}
