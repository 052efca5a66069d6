//! Takes a shard over from its old owner.

use std::sync::Arc;

use forebay_types::ShardId;
use tokio::time::Instant;

use super::{
    connect::{Role, connect},
    heartbeat::MySqlHeartbeat,
    lock::{self, LockNames},
    reader::MySqlReadPool,
    renewals::Renew,
    server::Server,
    session::MySqlSession,
    shared_server::SharedServer,
    writer::MySqlWriter,
};
use crate::{
    error::StoreError,
    mysql_address::Target,
    rows::Observation,
    shard::{Claim, ShardConnections},
    sql::{Session as _, Statement, commit, fence, read::SqlReader, scalar},
};

/// Kills the old owner's writing connection, then moves the fence to the next epoch.
///
/// A batch of the old owner that is in flight has two possible outcomes. If it commits first, the fence has
/// changed since it was seen and the claim fails. Otherwise it is rolled back.
///
/// Renewals come on a connection that all shards of a node share, and nobody kills that. One of the old owner
/// that is in flight does no harm. If it commits first, the number of renewals has changed since it was seen
/// and the claim fails. Otherwise it finds another epoch and incarnation in the row, and changes nothing.
/// The row's lock, which both take, says which of them is first.
pub(super) async fn take_over(
    shared: &Arc<SharedServer>,
    shard: ShardId,
    target: &Target,
    claim: &Claim,
    seen: &Observation,
) -> Result<Option<ShardConnections>, StoreError> {
    let mut session = connect(target, Role::Writer).await?;
    let server = Server::of(target, &mut session).await?;
    // A candidate that has already lost must not kill: the lock's name would be the winner's.
    let Some(old) = owner_lock_name(&mut session, seen).await? else { return Ok(None) };
    let mut names = LockNames::new(claim.incarnation);
    let name = names.next();
    lock::acquire(&mut session, &name).await?;
    lock::kill_holder(&mut session, &old).await?;
    let statement_bytes = match is_encrypted(&mut session).await? {
        true => TLS_RECORD_BYTES,
        false => packet_bytes_max(&mut session).await? / 4,
    };
    let lock = |_| {
        let sql = "/* forebay take-over */ UPDATE heartbeat SET writer_lock = ? WHERE id = 1";
        Some(Statement::new(sql, vec![name.as_str().into()]))
    };
    let taken = commit::take_over(&mut session, claim, seen, lock).await?;
    let Some(commit::MovedFence { fence, behind }) = taken else { return Ok(None) };
    let owner = fence::Owner { epoch: fence.epoch, incarnation: fence.incarnation };
    let writer = MySqlWriter {
        server: server.clone(),
        owner,
        session,
        names,
        held: vec![name],
        used: Instant::now(),
        statement_bytes,
    };
    let schema = target.schema().into();
    let claim = Renew { schema, owner, server: server.identity.clone() };
    let heartbeat = MySqlHeartbeat { server: server.clone(), shared: shared.clone(), claim };
    let reader = Arc::new(SqlReader::new(shard, MySqlReadPool::new(&server)));
    let (writer, heartbeat) = (Box::new(writer), Box::new(heartbeat));
    Ok(Some(ShardConnections { fence, behind, writer, heartbeat, reader }))
}

/// The name of the lock that the owner's writing connection holds. `None` means that the fence has changed,
/// or the claim was renewed, since they were seen.
async fn owner_lock_name(
    session: &mut MySqlSession,
    seen: &Observation,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT f.epoch, f.batch, h.renewals, h.writer_lock FROM fence f, heartbeat h \
               WHERE f.id = 1 AND h.id = 1";
    let row = scalar(session.fetch(Statement::new(sql, vec![])).await?, "the fence and the heartbeat")?;
    session.rollback().await?;
    if (row.u64(0)?, row.u64(1)?, row.u64(2)?) != (seen.epoch, seen.batch, seen.renewals) {
        return Ok(None);
    }
    row.text(3).map(Some)
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
