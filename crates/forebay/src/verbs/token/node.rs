//! Tokens of the catalog, through a node.

use forebay_access::{Grant, Namespaces};
use forebay_client::v1;
use forebay_proto::time::{from_timestamp, to_duration};
use forebay_types::{ALL_NAMESPACES, Clock as _, SystemClock};
use serde_json::Value;

use super::flags;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row, Tone},
    verbs::pages,
};

/// Has a node make a token.
pub async fn create(flags: flags::Create) -> Result<v1::CreateTokenResponse, Failure> {
    let servers = &flags.connection.servers;
    let namespace = match (servers.given_namespace(), common(&flags.grants)) {
        (Some(given), _) => given,
        (None, Some(common)) => common,
        (None, None) => servers.namespace()?,
    };
    let grant = |grant: &Grant| v1::Grant {
        namespaces: grant.namespaces.to_string(),
        scopes: grant.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
    };
    let client = flags.connection.client().await?;
    let request = v1::CreateTokenRequest {
        namespace,
        name: flags.name,
        grants: flags.grants.iter().map(grant).collect(),
        lifetime: flags.ends.map(to_duration),
        reason: flags.reason,
        request_id: client.request_id(),
    };
    Ok(client.ask(request).await?)
}

/// Returns the namespaces that all grants name, if they name the same.
fn common(grants: &[Grant]) -> Option<String> {
    let (first, rest) = grants.split_first()?;
    let same = rest.iter().all(|grant| grant.namespaces == first.namespaces);
    same.then(|| match &first.namespaces {
        Namespaces::All => ALL_NAMESPACES.to_owned(),
        namespaces => namespaces.to_string(),
    })
}

/// Lists the tokens of the catalog.
pub async fn list(flags: &flags::List) -> Result<(), Failure> {
    let namespace = flags.connection.servers.namespace()?;
    let client = flags.connection.client().await?;
    let pages = pages::collect(flags.limit, async |page_size, page_token| {
        let namespace = namespace.clone();
        let page = client.ask(v1::ListTokensRequest { namespace, page_size, page_token }).await?;
        Ok((page.tokens, page.next_page_token))
    });
    let (tokens, next) = pages.await?;
    List::up_to("tokens", &tokens, &next).print(flags.format.output, &flags.format.look)
}

/// Has a node give a token another secret.
pub async fn rotate(flags: &flags::Rotate) -> Result<String, Failure> {
    let namespace = flags.connection.servers.namespace()?;
    let client = flags.connection.client().await?;
    let request = v1::RotateTokenRequest {
        namespace,
        token_id: flags.id.to_string(),
        overlap: Some(to_duration(flags.overlap)),
        reason: flags.reason.clone(),
        request_id: client.request_id(),
    };
    Ok(client.ask(request).await?.secret)
}

/// Has a node revoke a token. Returns how many descend from it, or did.
pub async fn revoke(flags: &flags::Revoke) -> Result<u32, Failure> {
    let namespace = flags.connection.servers.namespace()?;
    let client = flags.connection.client().await?;
    let request = v1::RevokeTokenRequest {
        namespace,
        token_id: flags.id.to_string(),
        reason: flags.reason.clone(),
        with_descendants: flags.with_descendants,
    };
    Ok(client.ask(request).await?.descendants)
}

impl Row for v1::Token {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("ID", |it, _| Cell::from(&it.id)),
        Column::new("STATE", |it, _| {
            let now = SystemClock::default().wall();
            match it.ends_at {
                _ if it.revoked_at.is_some() => Cell::toned("revoked", Tone::Warn),
                Some(ends) if from_timestamp(ends) <= now => Cell::toned("ended", Tone::Warn),
                _ => Cell::toned("valid", Tone::Good),
            }
        }),
        Column::new("ENDS", |it, style| style.optional_time(it.ends_at).into()),
        Column::new("LAST USED", |it, style| style.optional_time(it.last_used_at).into()),
        Column::wide("OLD SECRET ENDS", |it, style| style.optional_time(it.overlap_ends_at).into()),
        Column::wide("MADE", |it, style| style.optional_time(it.made_at).into()),
        Column::wide("MADE BY", |it, _| Cell::from(&it.made_by)),
        Column::wide("MADE BY ID", |it, _| Cell::from(&it.made_by_id)),
        Column::new("NAME", |it, _| Cell::from(&it.name)),
        Column::new("GRANTS", |it, _| {
            let grants = it.grants.iter().map(|it| format!("{}:{}", it.namespaces, it.scopes.join(",")));
            grants.collect::<Vec<_>>().join(" ").into()
        }),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Token", self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_that_of_the_grants_if_they_agree() {
        let of = |grants: &[&str]| common(&grants.iter().map(|it| it.parse().unwrap()).collect::<Vec<_>>());
        assert_eq!(of(&["*:all"]), Some("-".to_owned()));
        assert_eq!(of(&["a:produce", "a:consume"]), Some("a".to_owned()));
        assert_eq!(of(&["team-*:produce"]), Some("team-*".to_owned()));
        assert_eq!(of(&["a:produce", "b:consume"]), None);
    }
}
