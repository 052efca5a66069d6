//! `forebay node list`

use clap::Args;
use forebay_client::v1::{Node, NodeState};
use serde_json::Value;

use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Row, Tone},
    verbs::connection::Connection,
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay node list
  forebay node list --addr queue1:7420 -o json
  forebay node list -o name")]
pub struct ListNodes {
    /// Which node is asked.
    #[command(flatten)]
    connection: Connection,
    /// How the list is printed.
    #[command(flatten)]
    format: Format,
}

impl ListNodes {
    /// Lists the nodes of the cluster.
    pub async fn run(self) -> Result<(), Failure> {
        let nodes = self.connection.client().await?.nodes().await?;
        List::all("nodes", &nodes).print(self.format.output, &self.format.look)
    }
}

impl Row for Node {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NODE", |node, _| Cell::from(&node.name)),
        Column::new("STATE", |node, _| state(node.state())),
        Column::new("SHARDS", |node, _| node.shards.into()),
        Column::new("CLIENTS", |node, _| Cell::from(&node.clients_address)),
        Column::new("HTTP", |node, _| Cell::from(&node.http_address)),
        Column::new("RELEASE", |node, _| Cell::from(&node.release)),
        Column::wide("PEER", |node, _| Cell::from(&node.peer_address)),
        Column::wide("STARTED", |node, style| style.optional_time(node.started_at).into()),
        Column::wide("DRAINED BY OPERATOR", |node, _| if node.draining { "yes" } else { "no" }.into()),
        Column::wide("ANSWERED", |node, _| if node.self_ { "this one" } else { "" }.into()),
    ];

    fn name(&self) -> String {
        self.name.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Node", self)
    }
}

fn state(state: NodeState) -> Cell {
    let tone = match state {
        NodeState::Live => Tone::Good,
        NodeState::Silent => Tone::Bad,
        _ => Tone::Warn,
    };
    Cell::toned(output::word(state.as_str_name(), "NODE_STATE_"), tone)
}
