//! AddShard.

use std::sync::Arc;

use forebay_config::Config;
use forebay_proto::v1::{self, ShardState};
use forebay_types::{Refusal, ShardId};

use super::{context::Admin, ctx::Ctx};
use crate::cluster::{self, Servers};

/// Serves AddShard. A file would be one on this node's machine: those are added there.
pub async fn add(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::AddShardRequest,
) -> Result<v1::AddShardResponse, Refusal> {
    let v1::AddShardRequest { url, mut reason, dry_run } = request;
    let operator = admin.operator(&mut reason);
    check(&url)?;
    let change = |config: Arc<Config>| async move {
        cluster::add_shard(&config, &url, Servers::Known, dry_run).await.map(|(id, _)| id)
    };
    let id: Option<ShardId> = operator.add(change).await?;
    let Some(id) = id else { return Ok(v1::AddShardResponse { shard: Some(active(0)) }) };
    if !dry_run {
        let who = &*ctx.caller.id;
        tracing::info!(shard.id = id.0, who, reason, "shard {id} was added");
        operator.seen(|seen| seen.shards.iter().any(|it| it.id == id)).await;
    }
    Ok(v1::AddShardResponse { shard: Some(admin.shard(id).await.unwrap_or_else(|| active(id.0))) })
}

/// Fails if a URL says more than account, server and schema. How nodes connect is up to their configuration:
/// a parameter could lead the node, and its password, elsewhere, or take the encryption away.
fn check(url: &str) -> Result<(), Refusal> {
    let Some(rest) = url.strip_prefix("mysql://") else {
        let message =
            "must begin with mysql://; a file is added with `forebay shard add --config` on its machine";
        return Err(Refusal::field("url", message));
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~@:/[]".contains(c);
    match rest.chars().find(|c| !is_plain(*c)) {
        Some(c @ ('?' | '#')) => {
            let message = format!(
                "has a {c}: parameters are not taken by calls; add it with `forebay shard add --config`, \
                 where the nodes' configuration is"
            );
            Err(Refusal::field("url", message))
        }
        Some(c) => {
            let message = format!("contains {c:?}; it must be like mysql://USER@HOST:PORT/SCHEMA");
            Err(Refusal::field("url", message))
        }
        None if rest.matches('/').count() > 1 || rest.matches('@').count() > 1 => {
            Err(Refusal::field("url", "must be like mysql://USER@HOST:PORT/SCHEMA"))
        }
        None => Ok(()),
    }
}

/// A shard of which the node knows no more yet.
fn active(id: u32) -> v1::Shard {
    v1::Shard { id, state: ShardState::Active.into(), ..v1::Shard::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_comes_by_a_call_names_account_server_and_schema_alone() {
        for url in [
            "mysql://forebay@db1/forebay_0001",
            "mysql://forebay@db1.example.com:3306/forebay_0001",
            "mysql://forebay@[2001:db8::1]:3306/forebay_0001",
            // The catalog refuses the password, with words of its own.
            "mysql://forebay:x@db1/forebay_0001",
        ] {
            check(url).unwrap();
        }
        for url in [
            "mysql://forebay@db1/s?socket=/tmp/evil.sock",
            "mysql://forebay@db1/s?ssl-mode=DISABLED",
            "mysql://forebay@db1?socket=%2Ftmp%2Fevil.sock/s",
            "mysql://forebay@db1/s?",
            "mysql://forebay@db1/s#x",
            "mysql://forebay@db1/s/../t",
            "mysql://forebay@db1@evil/s",
            "mysql://forebay%3Ax@db1/s",
            "mysql://forebay@db1/s\\t",
            "mysql://forebay@db1/s t",
            "mysql://forebay@dbé/s",
            "mariadb://forebay@db1/s",
            "sqlite:///tmp/1.db",
            "MYSQL://forebay@db1/s",
            "",
        ] {
            let refusal = check(url).expect_err(url);
            assert_eq!(
                (refusal.reason, refusal.field.as_deref()),
                (forebay_types::Reason::InvalidField, Some("url"))
            );
        }
    }
}
