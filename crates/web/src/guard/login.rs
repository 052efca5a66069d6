//! Login and logout. They work without JavaScript.

use std::{net::IpAddr, sync::Arc};

use axum::{Extension, response::Response};
use forebay_edge::admission::Caller;
use forebay_types::{Reason, Refusal};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE},
};
use maud::html;

use super::{
    answers::{leads_to, unavailable},
    cookies::SessionId,
    forms::{LOGIN, SIGNATURE},
    keeper::Keeper,
    target,
    visitor::{Visitor, hidden},
};
use crate::{fields::Fields, html::message};

/// The message for a token that is not accepted, whatever is wrong with it.
const REFUSED: &str = "This token is not valid.";
/// The message after too many tokens that were not accepted.
const TOO_OFTEN: &str = "Too many logins. Wait for some seconds, then try again.";

/// Serves `GET /login`.
pub async fn login_form(
    Extension(keeper): Extension<Arc<Keeper>>,
    Extension(visitor): Extension<Visitor>,
    Extension(query): Extension<Fields>,
    headers: HeaderMap,
) -> Response {
    match visitor.session.is_some() || !keeper.access.is_on() {
        // There is nothing to log in to, or it is done.
        true => leads_to(&target::link(query.get("next")), []),
        false => form(&keeper, &headers, query.get("next"), StatusCode::OK, None),
    }
}

/// Serves `POST /login`.
pub async fn log_in(
    Extension(keeper): Extension<Arc<Keeper>>,
    Extension(caller): Extension<Caller>,
    Extension(fields): Extension<Fields>,
    headers: HeaderMap,
) -> Response {
    let (next, link) = (fields.get("next"), target::link(fields.get("next")));
    if !keeper.access.is_on() {
        return leads_to(&link, []);
    }
    let client = caller.client.ip().to_canonical();
    // A valid token is never refused because of others that were not.
    let (token, secret, who) = match keeper.access.of_token(fields.get("token").trim()) {
        Ok(found) => found,
        Err(why) => {
            let too_often = keeper.attempts.failed_too_often(client);
            keeper.access.report(if too_often { "limited" } else { why }, &client, "http");
            return match too_often {
                true => form(&keeper, &headers, next, StatusCode::TOO_MANY_REQUESTS, Some(TOO_OFTEN)),
                false => form(&keeper, &headers, next, StatusCode::UNAUTHORIZED, Some(REFUSED)),
            };
        }
    };
    if keeper.attempts.too_often(&token) {
        return form(&keeper, &headers, next, StatusCode::TOO_MANY_REQUESTS, Some(TOO_OFTEN));
    }
    let before = keeper.cookies.session(&headers);
    // The id is a new one, whatever the browser has shown.
    let (cookie, session) = match keeper.cookies.new_session() {
        Ok(made) => made,
        Err(error) => return unavailable(&error.to_string()),
    };
    let audited = match keeper.audit.begin_act("Login", &who.identity, client).await {
        Ok(audited) => audited,
        Err(Refusal { message, .. }) => return unavailable(&message),
    };
    let begun = keeper.sessions.begin(session, &token, &secret, before).await;
    audited.end_act(begun.as_ref().err().map(|refusal| refusal.reason)).await;
    if let Err(Refusal { message, .. }) = begun {
        return unavailable(&message);
    }
    tracing::info!(%client, "a browser has logged in with token {token} ({:?})", who.identity.name);
    leads_to(&link, [cookie, keeper.cookies.without_login()])
}

/// Serves `POST /logout`.
pub async fn log_out(
    Extension(keeper): Extension<Arc<Keeper>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Response {
    let ended = match keeper.cookies.session(&headers) {
        Some(session) => {
            let client = caller.client.ip().to_canonical();
            // To its end, though the browser goes away: who has logged out must not stay logged in.
            let ending = tokio::spawn(end_session(keeper.clone(), session, client));
            let stopping = || Refusal::new(Reason::CatalogUnavailable, "the node is stopping");
            ending.await.unwrap_or_else(|_| Err(stopping()))
        }
        None => Ok(()),
    };
    let mut response = match ended {
        Ok(()) => leads_to("login", []),
        Err(Refusal { message, .. }) => {
            let what = "This browser is logged out. The session itself ends after 30 minutes";
            unavailable(&format!("{what}: {message}"))
        }
    };
    let headers = response.headers_mut();
    headers.append(SET_COOKIE, keeper.cookies.without_session());
    headers.insert("clear-site-data", HeaderValue::from_static("\"cache\", \"storage\""));
    response
}

/// Ends a session, and writes that down. One that is known to be gone already costs no write.
async fn end_session(keeper: Arc<Keeper>, session: SessionId, client: IpAddr) -> Result<(), Refusal> {
    let row = match keeper.sessions.read(&session).await {
        Ok(None) => return Ok(()),
        Ok(found) => found,
        // Whose it is can't be read. It is to end all the same.
        Err(_) => None,
    };
    let audited = match row.as_ref().and_then(|row| keeper.holder(row)) {
        // Nobody is kept from logging out: what can't be written down is in the log.
        Some(who) => keeper.audit.begin_act("Logout", &who.identity, client).await.ok(),
        None => None,
    };
    let ended = keeper.sessions.end(&session).await;
    if ended.is_ok() {
        let token = row.as_ref().map_or("unknown", |row| row.token_id.as_str());
        tracing::info!(%client, "a browser has logged out with token {token}");
    }
    if let Some(audited) = audited {
        audited.end_act(ended.as_ref().err().map(|refusal| refusal.reason)).await;
    }
    ended
}

/// The form of the login.
fn form(
    keeper: &Keeper,
    headers: &HeaderMap,
    next: &str,
    status: StatusCode,
    said: Option<&str>,
) -> Response {
    let (cookie, bound) = match keeper.cookies.login(headers) {
        Some(bound) => (None, bound),
        None => match keeper.cookies.new_login() {
            Ok((cookie, bound)) => (Some(cookie), bound),
            Err(error) => return unavailable(&error.to_string()),
        },
    };
    let body = html! {
        @if let Some(text) = said { p.bad role="alert" { (text) } }
        form method="post" action="login" {
            (hidden(SIGNATURE, &keeper.forms.sign(&bound, LOGIN)))
            (hidden("next", next))
            label {
                "Token"
                input type="password" name="token" autocomplete="current-password" required autofocus
                    spellcheck="false";
            }
            button { "Log in" }
        }
        p.facts {
            "A token begins with " code { "fby1_" } ". " code { "forebay token create" } " makes one."
        }
    };
    let mut response = message(status, "Log in to Forebay", body);
    let headers = response.headers_mut();
    headers.extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
