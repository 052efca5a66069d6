//! SQLite's result codes, sorted by what is to be done about them.

use crate::{ErrorClass, StoreError};

pub(super) fn classify(error: sqlx::Error) -> StoreError {
    let class = match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse().ok()).unwrap_or(1);
            class(code, database.message())
        }
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => {
            ErrorClass::Disconnected
        }
        _ => ErrorClass::Other,
    };
    StoreError::new(class, error.to_string())
}

/// By the extended result code, whose lowest byte is the plain one.
fn class(code: i32, message: &str) -> ErrorClass {
    match code & 0xff {
        // BUSY, LOCKED
        5 | 6 => ErrorClass::Replay,
        // NOMEM
        7 => ErrorClass::BackOff,
        // READONLY
        8 => ErrorClass::RoleLost,
        // INTERRUPT, IOERR
        9 | 10 => ErrorClass::Disconnected,
        // FULL
        13 => ErrorClass::DiskFull,
        // TOOBIG, CONSTRAINT, MISMATCH
        18..=20 => ErrorClass::Poison,
        // CORRUPT, CANTOPEN, NOTADB
        11 | 14 | 26 => ErrorClass::Schema,
        1 if message.contains("no such table") || message.contains("no such column") => ErrorClass::Schema,
        _ => ErrorClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_codes_are_sorted() {
        assert_eq!(class(517, "database is locked"), ErrorClass::Replay); // BUSY_SNAPSHOT
        assert_eq!(class(275, "CHECK constraint failed"), ErrorClass::Poison);
        assert_eq!(class(13, "database or disk is full"), ErrorClass::DiskFull);
        assert_eq!(class(1, "no such table: fence"), ErrorClass::Schema);
        assert_eq!(class(1, "near SELECT: syntax error"), ErrorClass::Other);
    }
}
