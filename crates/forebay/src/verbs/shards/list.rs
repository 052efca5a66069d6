//! Lists the shards of the cluster and who owns them.

use forebay_client::Shard;
use serde_json::{Value, json};

use crate::{
    failure::Failure,
    output::{self, Output},
    verbs::connection::{Connection, Format},
};

/// Lists them.
pub async fn list(connection: &Connection, format: &Format) -> Result<(), Failure> {
    let shards = connection.client().await?.shards().await?;
    Ok(match format.output {
        Output::Json => {
            let shards: Vec<Value> = shards.iter().map(to_json).collect();
            output::json(&json!({ "shards": shards }))
        }
        Output::Table => {
            let rows: Vec<_> = shards.iter().map(to_row).collect();
            output::table(
                ["SHARD", "STATE", "OWNER", "WISHED OWNER", "SERVER", "HELD UP BY", "TROUBLE"],
                &rows,
            )
        }
    }?)
}

fn to_json(shard: &Shard) -> Value {
    json!({
        "id": shard.id,
        "state": shard.state,
        "owner": shard.owner,
        "wished_owner": shard.wished_owner,
        "pinned": shard.pinned,
        "server": shard.server,
        "hold_up": shard.hold_up,
        "trouble": shard.trouble,
    })
}

fn to_row(shard: &Shard) -> [String; 7] {
    let pin = if shard.pinned { " (pinned)" } else { "" };
    [
        shard.id.to_string(),
        shard.state.to_owned(),
        shard.owner.clone(),
        format!("{}{pin}", shard.wished_owner),
        shard.server.clone(),
        shard.hold_up.clone(),
        shard.trouble.clone(),
    ]
}
