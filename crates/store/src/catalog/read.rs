//! Reads what has changed in a catalog.

use async_trait::async_trait;
use forebay_types::ClusterId;

use super::{
    call::{Call, Failure},
    columns,
    rows::{Assignment, CatalogChanges, Versions},
    session::CatalogSession,
};
use crate::{
    error::StoreError,
    sql::{Row, Statement, corrupt, scalar},
};

/// Reads what differs from the known versions.
pub(super) struct ReadChanges(pub(super) Versions);

#[async_trait]
impl Call for ReadChanges {
    type Answer = CatalogChanges;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<CatalogChanges, Failure> {
        let rows = session.snapshot(queries(self.0)).await?;
        Ok(decode(rows, self.0)?)
    }
}

/// The versions, the nodes, and the rows of what has another version. The comparison is made in the database,
/// so that one round trip does.
fn queries(known: Versions) -> Vec<Statement> {
    let nodes =
        format!("SELECT name, draining, beats, {} FROM node ORDER BY name", columns::OF_PROCESS.join(", "));
    vec![
        Statement::new(
            "SELECT cluster, shards_version, nodes_version, assignment_version FROM cluster WHERE id = 1",
            vec![],
        ),
        Statement::new(nodes, vec![]),
        Statement::new(
            "SELECT s.id, s.url, s.state FROM cluster c, shard s \
             WHERE c.id = 1 AND c.shards_version <> ? ORDER BY s.id",
            vec![known.shards.into()],
        ),
        Statement::new(
            "SELECT a.shard, a.node, a.pinned FROM cluster c, assignment a \
             WHERE c.id = 1 AND c.assignment_version <> ? ORDER BY a.shard",
            vec![known.assignment.into()],
        ),
    ]
}

fn decode(rows: Vec<Vec<Row>>, known: Versions) -> Result<CatalogChanges, StoreError> {
    let Ok([cluster, nodes, shards, homes]) = <[Vec<Row>; 4]>::try_from(rows) else {
        return Err(corrupt("a query of the catalog has no answer"));
    };
    let cluster = scalar(cluster, "the cluster")?;
    let versions = Versions { shards: cluster.u64(1)?, nodes: cluster.u64(2)?, assignment: cluster.u64(3)? };
    let shards = match versions.shards == known.shards {
        true => None,
        false => Some(shards.iter().map(columns::shard).collect::<Result<_, _>>()?),
    };
    let assignment = match versions.assignment == known.assignment {
        true => None,
        false => {
            let homes = homes.iter().map(columns::home).collect::<Result<_, _>>()?;
            Some(Assignment { version: versions.assignment, homes })
        }
    };
    Ok(CatalogChanges {
        cluster: ClusterId(cluster.hash(0)?),
        versions,
        nodes: nodes.iter().map(columns::node).collect::<Result<_, _>>()?,
        shards,
        assignment,
    })
}
