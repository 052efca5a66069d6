//! Answers to people and programs that are not let in.

use axum::response::{IntoResponse as _, Response};
use forebay_types::{Reason, Refusal};
use http::{
    HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, LOCATION, SET_COOKIE},
    request::Parts,
};
use maud::html;

use super::{forms::Unreadable, target, visitor::Visitor};
use crate::{connect::Failure, html::message};

/// Why a request is answered without its handler.
pub type Answer = Box<Response>;

/// The answer to people who are not known. A request with a token in the header gets the answer for programs.
/// A form can't be sent again after the login.
pub(crate) fn turned_away(head: &Parts, refusal: &Refusal) -> Answer {
    if shows_header(head) {
        return refused(refusal);
    }
    if refusal.reason == Reason::CatalogUnavailable {
        return unavailable(&refusal.message).into();
    }
    let next = if head.method == Method::POST { String::new() } else { target::of_request(&head.uri) };
    let link = match next.as_str() {
        "" => "login".to_owned(),
        next => {
            let login = "login?";
            let mut query = form_urlencoded::Serializer::for_suffix(login.to_owned(), login.len());
            query.append_pair("next", next).finish()
        }
    };
    leads_to(&link, []).into()
}

pub(crate) fn shows_header(head: &Parts) -> bool {
    head.headers.contains_key(AUTHORIZATION)
}

/// The answer to programs.
pub fn refused(refusal: &Refusal) -> Answer {
    Failure::from(refusal.clone()).answer(None).into()
}

/// The answer to people without the right.
pub fn forbidden(visitor: &Visitor, refusal: &Refusal) -> Answer {
    let status =
        if refusal.reason == Reason::InvalidField { StatusCode::BAD_REQUEST } else { StatusCode::FORBIDDEN };
    let said = html! {
        (visitor.session_line())
        p { "You can't do this: " (refusal.message) "." }
        p { "Log out, and log in with another token, or ask who gave you this one." }
    };
    message(status, "Not allowed", said).into()
}

/// The answer to people whose address has a field that the page does not have.
pub fn not_understood(refusal: &Refusal) -> Answer {
    message(StatusCode::BAD_REQUEST, "Not understood", html! { p { "The field " (refusal.to_string()) } })
        .into()
}

pub(crate) fn stale_form() -> Response {
    let said = html! {
        p { "The form is of another session, or cookies are blocked. Nothing was done." }
        p { a href="./" { "Go to the first page" } ", and try again from there." }
    };
    message(StatusCode::FORBIDDEN, "Form not accepted", said)
}

pub fn unreadable(why: Unreadable) -> Answer {
    let (status, said) = match why {
        Unreadable::Type => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "It is no form."),
        Unreadable::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "It is larger than 16 KiB."),
        Unreadable::Late => (StatusCode::REQUEST_TIMEOUT, "It did not arrive in time."),
        Unreadable::Cut => (StatusCode::BAD_REQUEST, "It did not arrive as a whole."),
    };
    message(status, "Form not accepted", html! { p { (said) } }).into()
}

/// The answer to people where a part of the cluster does not answer.
pub fn unavailable(why: &str) -> Response {
    message(StatusCode::SERVICE_UNAVAILABLE, "Try again later", html! { p { (why) "." } })
}

/// To another page. Links are relative, so that they hold behind any prefix of a proxy.
pub fn leads_to<const N: usize>(link: &str, cookies: [HeaderValue; N]) -> Response {
    // The target of a login has visible characters of ASCII alone.
    let link = HeaderValue::try_from(link).unwrap_or_else(|_| HeaderValue::from_static("./"));
    let mut response = (StatusCode::SEE_OTHER, [(LOCATION, link)]).into_response();
    response.headers_mut().extend(cookies.into_iter().map(|cookie| (SET_COOKIE, cookie)));
    response
}
