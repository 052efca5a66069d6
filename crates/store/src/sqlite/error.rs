//! Maps SQLite's result codes to error classes.

use crate::error::{ErrorClass, StoreError};

/// Converts a driver's error.
pub(super) fn classify(error: sqlx::Error) -> StoreError {
    let class = match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse().ok()).unwrap_or(1);
            class(code, database.message())
        }
        sqlx::Error::PoolTimedOut => ErrorClass::NoConnection,
        _ => ErrorClass::Disconnected,
    };
    StoreError::new(class, error.to_string())
}

/// Takes the extended result code. Its lowest byte is the primary one.
fn class(code: i32, message: &str) -> ErrorClass {
    match code & 0xff {
        // BUSY, LOCKED
        5 | 6 => ErrorClass::Replay,
        // NOMEM, READONLY
        7 | 8 => ErrorClass::Unavailable,
        // FULL
        13 => ErrorClass::DiskFull,
        // CONSTRAINT: PRIMARYKEY, UNIQUE, ROWID
        19 if matches!(code, 1_555 | 2_067 | 2_579) => ErrorClass::Duplicate,
        // TOOBIG, other CONSTRAINTs, MISMATCH
        18..=20 => ErrorClass::Poison,
        // CORRUPT, CANTOPEN, NOTADB
        11 | 14 | 26 => ErrorClass::Schema,
        1 if message.contains("no such table") || message.contains("no such column") => ErrorClass::Schema,
        // Among them: INTERRUPT, IOERR
        _ => ErrorClass::Unrecognized,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_codes_have_classes() {
        assert_eq!(class(517, "database is locked"), ErrorClass::Replay); // BUSY_SNAPSHOT
        assert_eq!(class(275, "CHECK constraint failed"), ErrorClass::Poison);
        assert_eq!(class(1_555, "UNIQUE constraint failed: item.seq"), ErrorClass::Duplicate);
        assert_eq!(class(13, "database or disk is full"), ErrorClass::DiskFull);
        assert_eq!(class(1, "no such table: fence"), ErrorClass::Schema);
        assert_eq!(class(1, "near SELECT: syntax error"), ErrorClass::Unrecognized);
    }
}
