//! Takes a shard over from its old owner.

use std::sync::Arc;

use sqlx::mysql::MySqlConnectOptions;
use tokio::time::Instant;

use super::{
    connect::{Role, connect},
    heartbeat::MySqlHeartbeat,
    lock::{self, LockNames},
    reader::MySqlReadPool,
    server::Server,
    session::MySqlSession,
    writer::MySqlWriter,
};
use crate::{
    error::StoreError,
    rows::Observation,
    shard::{Claim, ShardConnections},
    sql::{Session as _, Statement, commit, fence, read::SqlReader, scalar},
};

/// Kills the old owner's connections, then moves the fence to the next epoch.
///
/// A batch of the old owner that is in flight has two possible outcomes. If it commits first, the fence has
/// changed since it was seen and the claim fails. Otherwise it is rolled back.
pub(super) async fn take_over(
    options: &MySqlConnectOptions,
    claim: &Claim,
    seen: &Observation,
) -> Result<Option<ShardConnections>, StoreError> {
    let mut session = connect(options, Role::Writer).await?;
    let server = Server::of(options, &mut session).await?;
    // A candidate that has already lost must not kill: the lock names would be the winner's.
    let Some(old) = owner_lock_names(&mut session, seen).await? else { return Ok(None) };
    let mut writer_names = LockNames::new(claim.incarnation, 'w');
    let mut heartbeat_names = LockNames::new(claim.incarnation, 'h');
    let (writer_name, heartbeat_name) = (writer_names.next(), heartbeat_names.next());
    lock::acquire(&mut session, &writer_name).await?;
    let mut renewing = server.connect(Role::Single).await?;
    lock::acquire(&mut renewing, &heartbeat_name).await?;
    for name in &old {
        lock::kill_holder(&mut session, name).await?;
    }
    let statement_bytes = match is_encrypted(&mut session).await? {
        true => TLS_RECORD_BYTES,
        false => packet_bytes_max(&mut session).await? / 4,
    };
    let locks = |_| {
        let values = vec![writer_name.as_str().into(), heartbeat_name.as_str().into()];
        let sql =
            "/* forebay take-over */ UPDATE heartbeat SET writer_lock = ?, heartbeat_lock = ? WHERE id = 1";
        Some(Statement::new(sql, values))
    };
    let Some(fence) = commit::take_over(&mut session, claim, seen, locks).await? else { return Ok(None) };
    let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
    let writer = MySqlWriter {
        server: server.clone(),
        owner,
        session,
        names: writer_names,
        held: vec![writer_name],
        used: Instant::now(),
        statement_bytes,
    };
    let heartbeat = MySqlHeartbeat {
        server: server.clone(),
        owner,
        session: renewing,
        names: heartbeat_names,
        name: heartbeat_name,
    };
    let reader = Arc::new(SqlReader(MySqlReadPool::new(&server)));
    Ok(Some(ShardConnections { fence, writer: Box::new(writer), heartbeat: Box::new(heartbeat), reader }))
}

/// The names of the locks that the owner's connections hold. `None` means that the fence has changed, or the
/// claim was renewed, since they were seen.
async fn owner_lock_names(
    session: &mut MySqlSession,
    seen: &Observation,
) -> Result<Option<[String; 2]>, StoreError> {
    let sql = "SELECT f.epoch, f.batch, h.renewals, h.writer_lock, h.heartbeat_lock \
               FROM fence f, heartbeat h WHERE f.id = 1 AND h.id = 1";
    let row = scalar(session.fetch(Statement::new(sql, vec![])).await?, "the fence and the heartbeat")?;
    session.rollback().await?;
    if (row.u64(0)?, row.u64(1)?, row.u64(2)?) != (seen.epoch, seen.batch, seen.renewals) {
        return Ok(None);
    }
    Ok(Some([row.text(3)?, row.text(4)?]))
}

/// The most bytes of a statement on an encrypted connection, so that it fits one TLS record with room to
/// spare. The driver leaves Nagle's algorithm on, which delays a second record until the server acknowledges
/// the first, 40 ms later.
const TLS_RECORD_BYTES: usize = 14 << 10;

async fn is_encrypted(session: &mut MySqlSession) -> Result<bool, StoreError> {
    let sql = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";
    let rows = session.fetch(Statement::new(sql, vec![])).await?;
    Ok(!scalar(rows, "Ssl_cipher")?.bytes(1)?.is_empty())
}

/// The most bytes that the server accepts in one packet.
async fn packet_bytes_max(session: &mut MySqlSession) -> Result<usize, StoreError> {
    let rows = session.fetch(Statement::new("SELECT @@max_allowed_packet", vec![])).await?;
    let bytes = scalar(rows, "max_allowed_packet")?.u64(0)?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}
