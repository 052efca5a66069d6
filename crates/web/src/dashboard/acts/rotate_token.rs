//! Gives a token another secret, and shows it.

use axum::response::{IntoResponse as _, Response};
use forebay_access::TokenId;
use forebay_proto::v1::{RotateTokenRequest, Token};

use super::{
    super::{asked::PageRequest, trouble::Trouble},
    create_token::{show_secret, span},
};

/// Serves `POST /rotate-token`.
pub async fn act(asked: PageRequest) -> Response {
    match rotate(&asked).await {
        Ok((token, secret)) => show_secret(asked, "Token rotated", &token, &secret).await,
        Err(trouble) => trouble.into_response(),
    }
}

async fn rotate(asked: &PageRequest) -> Result<(Token, String), Trouble> {
    let request = RotateTokenRequest {
        namespace: asked.namespace().to_owned(),
        token_id: token_id(asked.fields.get("id"))?,
        overlap: span("overlap", asked.fields.get("overlap"))?,
        reason: asked.fields.get("reason").to_owned(),
        request_id: String::new(),
    };
    let answer = asked.ask(request).await?;
    Ok((answer.token.unwrap_or_default(), answer.secret))
}

/// The id of the token that a form names.
pub fn token_id(text: &str) -> Result<String, Trouble> {
    match TokenId::new(text) {
        Some(id) => Ok(id.to_string()),
        None => Err(Trouble::field("id", "must be the id of a token, 12 letters and digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_a_token() {
        assert_eq!(token_id("0Ab1Cd2Ef3Gh").unwrap(), "0Ab1Cd2Ef3Gh");
        assert!(token_id("").is_err() && token_id("mailer").is_err());
    }
}
