//! A shard changes its owner.

use std::sync::Arc;

use sqlx::mysql::MySqlConnectOptions;
use tokio::time::Instant;

use super::{
    connect::{Role, connect},
    heartbeat::MySqlHeartbeat,
    lock::{self, LockNames},
    reader::MySqlReadPool,
    session::MySqlSession,
    writer::MySqlWriter,
};
use crate::{
    Claim, Observation, ShardConnections, StoreError,
    sql::{Session as _, Statement, commit, fence, read::SqlReader, scalar},
};

/// Kills the old owner's connections, then moves the fence on. What the old owner has under way is
/// either committed before, and then the fence is not where it was seen; or it is rolled back.
pub(super) async fn take_over(
    options: &MySqlConnectOptions,
    claim: &Claim,
    seen: &Observation,
) -> Result<Option<ShardConnections>, StoreError> {
    let mut session = connect(options, Role::Writer).await?;
    // Nobody who has lost already may kill: the names would be the winner's.
    let Some(old) = names_of_owner(&mut session, seen).await? else { return Ok(None) };
    let mut writer_names = LockNames::new(claim.incarnation, 'w');
    let mut heartbeat_names = LockNames::new(claim.incarnation, 'h');
    let (writer_name, heartbeat_name) = (writer_names.next(), heartbeat_names.next());
    lock::take(&mut session, &writer_name).await?;
    let mut renewing = connect(options, Role::Single).await?;
    lock::take(&mut renewing, &heartbeat_name).await?;
    for name in &old {
        lock::kill_holder(&mut session, name).await?;
    }
    let statement_bytes = match encrypted(&mut session).await? {
        true => TLS_RECORD_BYTES,
        false => packet(&mut session).await? / 4,
    };
    let locks = |_| {
        let values = vec![writer_name.as_str().into(), heartbeat_name.as_str().into()];
        let sql = "UPDATE heartbeat SET writer_lock = ?, heartbeat_lock = ? WHERE id = 1";
        Some(Statement::new(sql, values))
    };
    let Some(fence) = commit::take_over(&mut session, claim, seen, locks).await? else { return Ok(None) };
    let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
    let writer = MySqlWriter {
        options: options.clone(),
        owner,
        session,
        names: writer_names,
        held: vec![writer_name],
        used: Instant::now(),
        statement_bytes,
    };
    let heartbeat = MySqlHeartbeat {
        options: options.clone(),
        owner,
        session: renewing,
        names: heartbeat_names,
        name: heartbeat_name,
    };
    let reader = Arc::new(SqlReader(MySqlReadPool::new(options)));
    Ok(Some(ShardConnections { fence, writer: Box::new(writer), heartbeat: Box::new(heartbeat), reader }))
}

/// The names that the owner's connections hold. `None`: the fence is not where it was seen.
async fn names_of_owner(
    session: &mut MySqlSession,
    seen: &Observation,
) -> Result<Option<[String; 2]>, StoreError> {
    let sql = "SELECT f.epoch, f.batch, h.writer_lock, h.heartbeat_lock \
               FROM fence f, heartbeat h WHERE f.id = 1 AND h.id = 1";
    let row = scalar(session.fetch(Statement::new(sql, vec![])).await?, "the fence and the heartbeat")?;
    session.rollback().await?;
    if (row.u64(0)?, row.u64(1)?) != (seen.epoch, seen.batch) {
        return Ok(None);
    }
    Ok(Some([row.text(2)?, row.text(3)?]))
}

/// What goes in one write, whatever it is wrapped in. The driver leaves Nagle's algorithm on, which holds
/// the second record of a statement back until the server acknowledges the first: 40 ms later.
const TLS_RECORD_BYTES: usize = 14 << 10;

async fn encrypted(session: &mut MySqlSession) -> Result<bool, StoreError> {
    let sql = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
    let rows = session.fetch(Statement::new(sql, vec![])).await?;
    Ok(!scalar(rows, "Ssl_cipher")?.bytes(1)?.is_empty())
}

/// The most bytes that the server takes in one packet.
async fn packet(session: &mut MySqlSession) -> Result<usize, StoreError> {
    let rows = session.fetch(Statement::new("SELECT @@max_allowed_packet", vec![])).await?;
    let bytes = scalar(rows, "max_allowed_packet")?.u64(0)?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}
