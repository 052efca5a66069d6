//! Lets a token be of no use any more. Whoever does it types the token's name.

use axum::response::Response;
use forebay_proto::v1::RevokeTokenRequest;

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    rotate_token::token_id,
};

/// Serves `POST /revoke-token`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(revoke(&asked).await)
}

async fn revoke(asked: &PageRequest) -> Result<String, Trouble> {
    let namespace = asked.namespace();
    if asked.fields.get("typed").trim() != asked.fields.get("name") {
        return Err(Trouble::field("typed", "is not the name of the token, so it was not revoked"));
    }
    let request = RevokeTokenRequest {
        namespace: namespace.to_owned(),
        token_id: token_id(asked.fields.get("id"))?,
        reason: asked.fields.get("reason").to_owned(),
        with_descendants: !asked.fields.get("descendants").is_empty(),
    };
    let with_descendants = request.with_descendants;
    let revoked = asked.ask(request).await?;
    let done = if revoked.descendants > 0 && !with_descendants { "revoked-alone" } else { "revoked" };
    Ok(told("access", &[("ns", asked.fields.get("ns"))], done))
}
