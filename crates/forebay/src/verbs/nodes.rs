//! `forebay nodes`

use clap::Args;
use forebay_client::Node;
use serde_json::{Value, json};

use super::connection::{Connection, Format};
use crate::{
    failure::Failure,
    output::{self, Output},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay nodes
  forebay nodes --addr queue1:7420 --output json")]
pub struct Nodes {
    /// Which node is asked.
    #[command(flatten)]
    connection: Connection,
    /// How the list is printed.
    #[command(flatten)]
    format: Format,
}

impl Nodes {
    /// Lists the nodes of the cluster.
    pub async fn run(self) -> Result<(), Failure> {
        let nodes = self.connection.client().await?.nodes().await?;
        Ok(match self.format.output {
            Output::Json => {
                let nodes: Vec<Value> = nodes.iter().map(to_json).collect();
                output::json(&json!({ "nodes": nodes }))
            }
            Output::Table => {
                let rows: Vec<_> = nodes.iter().map(to_row).collect();
                output::table(["NODE", "STATE", "SHARDS", "CLIENTS", "HTTP", "RELEASE"], &rows)
            }
        }?)
    }
}

fn to_json(node: &Node) -> Value {
    json!({
        "name": node.name,
        "state": node.state,
        "shards": node.shards,
        "clients_address": node.clients_address,
        "http_address": node.http_address,
        "release": node.release,
    })
}

fn to_row(node: &Node) -> [String; 6] {
    [
        node.name.clone(),
        node.state.to_owned(),
        node.shards.to_string(),
        node.clients_address.clone(),
        node.http_address.clone(),
        node.release.clone(),
    ]
}
