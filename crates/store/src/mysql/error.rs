//! Maps the server's error numbers to error classes.

use std::fmt;

use sqlx::mysql::MySqlDatabaseError;

use crate::error::{ErrorClass, StoreError};

/// Another server answers at the shard's address.
#[derive(Debug)]
pub(super) struct OtherServer {
    /// The one that held the shard when it was taken over.
    pub(super) expected: String,
    /// The one that answers.
    pub(super) found: String,
}

impl fmt::Display for OtherServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expected, found } = self;
        write!(f, "another database server answers at the address ({found}); it was {expected}")
    }
}

impl std::error::Error for OtherServer {}

/// The error of an owner whose connection leads to another server than its others.
pub(super) fn other_server(expected: &str, found: &str) -> StoreError {
    let other = OtherServer { expected: expected.to_owned(), found: found.to_owned() };
    classify(sqlx::Error::Configuration(Box::new(other)))
}

/// Whether an error says that another server answers.
pub(super) fn is_other_server(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Configuration(source) if source.is::<OtherServer>())
}

/// The numbers of MySQL's `ER_DUP_FIELDNAME` and `ER_DUP_KEYNAME`.
const DUPLICATE_COLUMN: u16 = 1060;
const DUPLICATE_INDEX: u16 = 1061;

/// Whether a statement failed because the column or the index that it adds is there.
pub(super) fn is_there_already(error: &sqlx::Error) -> bool {
    let database = error.as_database_error().and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>());
    database.is_some_and(|error| matches!(error.number(), DUPLICATE_COLUMN | DUPLICATE_INDEX))
}

/// Converts a driver's error.
pub(super) fn classify(error: sqlx::Error) -> StoreError {
    let class = match &error {
        sqlx::Error::Database(database) => match database.try_downcast_ref::<MySqlDatabaseError>() {
            Some(error) => class(error.number(), error.message()),
            None => ErrorClass::Unrecognized,
        },
        error if is_other_server(error) => ErrorClass::NotPrimary,
        sqlx::Error::PoolTimedOut => ErrorClass::NoConnection,
        // I/O, TLS and protocol errors, and all that the driver reports about a connection's state.
        _ => ErrorClass::Disconnected,
    };
    let message = error.to_string();
    // The driver speaks of its own build.
    if message.contains("RSA auth backend disabled") {
        let message = "the account's password is only sent over TLS (caching_sha2_password): switch TLS on \
                       at the server, and do not set node.mysql_tls = \"off\"";
        return StoreError::new(class, message);
    }
    StoreError::new(class, message)
}

/// MySQL and MariaDB share their numbers below 1900. Above, each has its own.
fn class(number: u16, message: &str) -> ErrorClass {
    match number {
        // Deadlock, lock wait timeout, record changed, NOWAIT, query killed, statement timeout (twice),
        // a statement that must be prepared again, a KILL of a missing connection.
        1213 | 1205 | 1020 | 3572 | 1317 | 3024 | 1969 | 1615 | 1094 => ErrorClass::Replay,
        // Too many connections (three kinds), transactions or threads; out of memory (three kinds).
        1040 | 1203 | 1226 | 1637 | 1135 | 1037 | 1038 | 1041 => ErrorClass::Unavailable,
        // Too many prepared statements, of all connections to the server.
        1461 => ErrorClass::Unavailable,
        // Shutting down, aborting.
        1053 | 3168 => ErrorClass::Unavailable,
        // Read-only (three kinds), refused by group replication. 1290 names the option that prevents it.
        1290 if message.contains("read-only") || message.contains("read_only") => ErrorClass::NotPrimary,
        1836 | 1792 | 3100 => ErrorClass::NotPrimary,
        // Too long, wrong characters, packet too large, too many placeholders, out of range, NULL, row too
        // large, a CHECK (twice).
        1406 | 1366 | 1153 | 1390 | 1264 | 1048 | 1118 | 3819 | 4025 => ErrorClass::Poison,
        // Duplicate key (three kinds).
        1062 | 1022 | 1586 => ErrorClass::Duplicate,
        1114 | 1021 => ErrorClass::DiskFull,
        // Writing or a storage engine failed. With ENOSPC the disk is full.
        3 | 1026 | 1030 if message.contains("28") => ErrorClass::DiskFull,
        // No such database, table, column; wrong number of columns.
        1049 | 1146 | 1054 | 1136 => ErrorClass::Schema,
        // Killed, idle for too long, network errors, forced close (three kinds).
        1927 | 4031 | 1158..=1161 | 1080 | 1152 | 1184 => ErrorClass::Disconnected,
        _ => ErrorClass::Unrecognized,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_classes() {
        assert_eq!(class(1213, "Deadlock found"), ErrorClass::Replay);
        assert_eq!(class(1040, "Too many connections"), ErrorClass::Unavailable);
        assert_eq!(class(1461, "more than max_prepared_stmt_count"), ErrorClass::Unavailable);
        assert_eq!(class(1290, "running with the --read-only option"), ErrorClass::NotPrimary);
        assert_eq!(class(1290, "running with the --secure-file-priv option"), ErrorClass::Unrecognized);
        assert_eq!(class(1159, "Got timeout reading communication packets"), ErrorClass::Disconnected);
        assert_eq!(class(1406, "Data too long for column"), ErrorClass::Poison);
        assert_eq!(class(1062, "Duplicate entry '954' for key 'PRIMARY'"), ErrorClass::Duplicate);
        assert_eq!(class(1114, "The table is full"), ErrorClass::DiskFull);
        assert_eq!(class(1030, "Got error 28 from storage engine"), ErrorClass::DiskFull);
        assert_eq!(class(1030, "Got error 5 from storage engine"), ErrorClass::Unrecognized);
        assert_eq!(class(1927, "Connection was killed"), ErrorClass::Disconnected);
        assert_eq!(class(1146, "Table doesn't exist"), ErrorClass::Schema);
    }
}
