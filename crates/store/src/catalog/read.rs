//! Reads what has changed in a catalog.

use async_trait::async_trait;
use forebay_types::{ClusterId, PolicyChanges};

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
    let nodes = format!(
        "SELECT name, draining, beats, {}, {} FROM node ORDER BY name",
        columns::OF_PROCESS.join(", "),
        columns::STARTED_AT
    );
    vec![
        Statement::new(
            "SELECT cluster, shards_version, nodes_version, assignment_version, policies_version, \
             policies_floor FROM cluster WHERE id = 1",
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
        changed("policy", &columns::OF_POLICY, known.policies),
        changed("setting", &columns::OF_SETTINGS, known.policies),
    ]
}

/// The policies or settings that have changed; all, if removed ones may be missing.
fn changed(table: &str, columns: &[&str], known: u64) -> Statement {
    let columns: String = columns.iter().map(|column| format!(", p.{column}")).collect();
    let sql = format!(
        "SELECT p.namespace, p.topic, p.version{columns} FROM cluster c, {table} p \
         WHERE c.id = 1 AND c.policies_version <> ? \
         AND (p.version > ? OR c.policies_floor > ? OR c.policies_version < ?) ORDER BY p.version"
    );
    Statement::new(sql, vec![known.into(); 4])
}

/// Whether the rows of [`changed`] are all that there are.
const fn is_whole(known: u64, version: u64, floor: u64) -> bool {
    version != known && (known == 0 || floor > known || version < known)
}

fn decode(rows: Vec<Vec<Row>>, known: Versions) -> Result<CatalogChanges, StoreError> {
    let Ok([cluster, nodes, shards, homes, policies, settings]) = <[Vec<Row>; 6]>::try_from(rows) else {
        return Err(corrupt("a query of the catalog has no answer"));
    };
    let cluster = scalar(cluster, "the cluster")?;
    let versions = Versions {
        shards: cluster.u64(1)?,
        nodes: cluster.u64(2)?,
        assignment: cluster.u64(3)?,
        policies: cluster.u64(4)?,
    };
    let policies = PolicyChanges {
        whole: is_whole(known.policies, versions.policies, cluster.u64(5)?),
        rows: policies.iter().map(columns::policy).collect::<Result<_, _>>()?,
        settings: settings.iter().map(columns::settings).collect::<Result<_, _>>()?,
    };
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
        policies,
    })
}
