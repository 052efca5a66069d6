//! Makes a token, and shows it.

use axum::response::{IntoResponse as _, Response};
use forebay_access::{Grant, Namespaces};
use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_proto::v1::{self, CreateTokenRequest, Token};
use maud::html;

use super::super::{
    asked::PageRequest, frame, links::link, live::Live, show::RenderedPage, texts::time, trouble::Trouble,
};
use crate::fields::Fields;

/// Serves `POST /create-token`.
pub async fn act(asked: PageRequest) -> Response {
    match create(&asked).await {
        Ok((token, secret)) => show_secret(asked, "Token made", &token, &secret).await,
        Err(trouble) => trouble.into_response(),
    }
}

async fn create(asked: &PageRequest) -> Result<(Token, String), Trouble> {
    let name = asked.fields.get("name").trim();
    if name.is_empty() {
        return Err(Trouble::field("name", "must say who gets the token"));
    }
    let grants = grants(asked.fields.get("grants"))?;
    let request = CreateTokenRequest {
        // Where the rights are, if they are in one place: who has `admin` there can then revoke it.
        namespace: common(&grants).unwrap_or_else(|| asked.namespace().to_owned()),
        name: name.to_owned(),
        grants: grants.iter().map(message).collect(),
        lifetime: span("ends", asked.fields.get("ends"))?,
        reason: asked.fields.get("reason").to_owned(),
        request_id: String::new(),
    };
    let answer = asked.ask(request).await?;
    Ok((answer.token.unwrap_or_default(), answer.secret))
}

/// The grants that a form names, with spaces or line breaks between them.
fn grants(text: &str) -> Result<Vec<Grant>, Trouble> {
    let grants = text.replace(", ", ",");
    let grants: Result<Vec<Grant>, _> = grants.split_whitespace().map(str::parse).collect();
    match grants {
        Ok(grants) if grants.is_empty() => {
            Err(Trouble::field("grants", "must give a right, as in billing:produce,consume"))
        }
        Ok(grants) => Ok(grants),
        Err(error) => Err(Trouble::field("grants", &format!("is wrong: {error}"))),
    }
}

/// The namespaces that all grants name, if they name the same.
fn common(grants: &[Grant]) -> Option<String> {
    let (first, rest) = grants.split_first()?;
    let same = rest.iter().all(|grant| grant.namespaces == first.namespaces);
    same.then(|| match &first.namespaces {
        Namespaces::All => ALL_NAMESPACES.to_owned(),
        namespaces => namespaces.to_string(),
    })
}

fn message(grant: &Grant) -> v1::Grant {
    let scopes = grant.scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
    v1::Grant { namespaces: grant.namespaces.to_string(), scopes }
}

/// A span of time that a form names, as `90d`. Empty: none.
pub fn span(field: &str, text: &str) -> Result<Option<prost_types::Duration>, Trouble> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let span = humantime::parse_duration(text).map_err(|error| error.to_string());
    let span = span.and_then(|span| prost_types::Duration::try_from(span).map_err(|error| error.to_string()));
    span.map(Some).map_err(|error| Trouble::field(field, &format!("is no span: {error}")))
}

/// The page with the text of a token. It is kept nowhere, so that this page is the only one that has it.
pub(crate) async fn show_secret(
    mut asked: PageRequest,
    title: &str,
    token: &Token,
    secret: &str,
) -> Response {
    let namespace = asked.fields.get("ns").to_owned();
    // The other fields of the form do not belong into the address of a page.
    asked.fields = Fields::read(link("", &[("ns", &namespace)]).trim_start_matches('?').as_bytes());
    let now = asked.now();
    let body = html! {
        h1 { (title) }
        p { "This is the token of " bdi { (token.name) } ". It is not shown again: copy it now." }
        pre { (secret) }
        dl.pairs {
            dt { "id" } dd.id { (token.id) }
            dt { "rights" } dd { (v1_grants(&token.grants)) }
            dt { "ends" } dd { @if token.ends_at.is_some() { (time(token.ends_at, now)) } @else { "never" } }
            @if token.overlap_ends_at.is_some() {
                dt { "secret before" } dd { "ends " (time(token.overlap_ends_at, now)) }
            }
        }
        p { "Clients show it with each call. Put it into a file that they alone can read:" }
        pre { "forebay whoami --token-file " (file_name(&token.id)) }
        p { a href=(link("access", &[("ns", &namespace)])) { "Back to all tokens" } }
    };
    let shown = RenderedPage::new(title, body, Live::default());
    frame::answer("access", &asked, shown).await
}

fn v1_grants(grants: &[v1::Grant]) -> String {
    let grants = grants.iter().map(|grant| format!("{}:{}", grant.namespaces, grant.scopes.join(",")));
    grants.collect::<Vec<_>>().join(" ")
}

/// A file for a token: its name may have any characters, its id has letters and digits.
fn file_name(id: &str) -> String {
    format!("{id}.token")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_grants() {
        let read = |text: &str| grants(text).map(|grants| grants.iter().map(Grant::to_string).collect());
        let texts: Vec<String> = read(" billing:produce, consume\r\nteam-*:observe ").unwrap();
        assert_eq!(texts, ["billing:produce,consume", "team-*:observe"]);
        let wrong = |text: &str| read(text).map(|texts: Vec<String>| texts).unwrap_err().message;
        assert!(wrong(" ").contains("must give a right"));
        assert!(wrong("billing:fly").contains("the field grants is wrong"), "{}", wrong("billing:fly"));
    }

    #[test]
    fn a_token_lies_where_its_grants_are_if_they_agree() {
        let of = |text: &str| common(&grants(text).unwrap());
        assert_eq!(of("*:all"), Some("-".to_owned()));
        assert_eq!(of("a:produce a:consume"), Some("a".to_owned()));
        assert_eq!(of("a:produce b:consume"), None);
    }

    #[test]
    fn a_form_names_a_span_or_none() {
        assert_eq!(span("ends", " ").unwrap(), None);
        assert_eq!(span("ends", "90d").unwrap().unwrap().seconds, 90 * 86_400);
        assert!(span("ends", "soon").unwrap_err().message.contains("the field ends is no span"));
    }
}
