//! `forebay check cluster`

use clap::Args;
use forebay_client::v1::NodeState;

use super::{
    figures::{Bad, Spec, Unit},
    flags::CheckFlags,
    report::CheckedObject,
};
use crate::failure::Failure;

/// Figures that are compared.
pub const FIGURES: &[Spec] = &[
    Spec { name: "unserved", unit: Unit::Count, bad: Bad::Above, usual: [None, Some(0.0)] },
    Spec { name: "trouble", unit: Unit::Count, bad: Bad::Above, usual: [None, Some(0.0)] },
    Spec { name: "silent", unit: Unit::Count, bad: Bad::Above, usual: [Some(0.0), None] },
    Spec { name: "live", unit: Unit::Count, bad: Bad::Below, usual: [None; 2] },
];

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay check cluster
  forebay check cluster --warn live=3 --critical live=2 --format nagios

Figures: unserved shards, shards in trouble (critical above 0 unless told otherwise) and silent nodes (a
warning above 0), bad above a threshold; and live nodes, bad below it.
Exit status: 0 fine, 1 warning, 2 critical, 3 unknown.")]
pub struct Cluster {
    /// Flags that all checks share.
    #[command(flatten)]
    pub checking: CheckFlags,
}

/// Asks for the nodes and the shards.
pub async fn look(flags: &Cluster) -> Result<CheckedObject, Failure> {
    let client = flags.checking.connection.client().await?;
    let (nodes, shards) = (client.nodes().await?, client.shards().await?);
    let nodes = |state| nodes.iter().filter(|node| node.state() == state).count();
    let unserved = shards.iter().filter(|shard| shard.owner.is_empty()).count();
    let trouble = shards.iter().filter(|shard| !shard.trouble.is_empty()).count();
    // Far below 2^53.
    let values =
        [unserved, trouble, nodes(NodeState::Silent), nodes(NodeState::Live)].map(|count| count as f64);
    Ok(CheckedObject {
        target: format!("{} shards", shards.len()),
        labels: Vec::new(),
        values: values.into(),
        in_doubt: None,
    })
}
