//! Creates and drops generations of the dedupe table. DDL commits any open transaction, so it has connections
//! of its own.

use super::{connect::Role, server::Server};
use crate::error::StoreError;

/// Creates a generation, unless it exists.
pub(super) async fn create(server: &Server, number: u64) -> Result<(), StoreError> {
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS dedupe_{number} (\
         hash BINARY(16) NOT NULL COMMENT '128-bit hash of a dedupe key, a request id or a removal', \
         at BIGINT NOT NULL COMMENT 'when it was stored, in microseconds since the Unix epoch', \
         answer MEDIUMBLOB NOT NULL COMMENT 'packed: the first answer, and of what; empty: of a removal', \
         PRIMARY KEY (hash)\
         ) ENGINE=InnoDB COMMENT='dedupe keys and request ids of one time span; dropped as a whole'"
    );
    run(server, sql).await
}

/// Drops a generation, if it exists.
pub(super) async fn drop(server: &Server, number: u64) -> Result<(), StoreError> {
    run(server, format!("DROP TABLE IF EXISTS dedupe_{number}")).await
}

async fn run(server: &Server, sql: String) -> Result<(), StoreError> {
    server.connect(Role::Ddl).await?.run(sql).await
}
