//! The packed column `last_failures`: failed deliveries, one behind the other, the latest first.
//!
//! A statement that ends a delivery does not know the earlier failures, and need not: it puts the new one
//! before them, and cuts the column where the last five end at the latest. Bytes behind five are not read.

use forebay_types::Failure;
use serde::{Deserialize, Serialize};

use super::{
    dialect::Dialect,
    pack,
    value::{Value, corrupt},
};
use crate::error::StoreError;

/// The most bytes of a failure: its two texts, and 32 for all else.
const FAILURE_BYTES: usize = 2 * Failure::REASON_BYTES + 32;
/// Where the column is cut.
const COLUMN_BYTES: usize = Failure::KEPT * FAILURE_BYTES;

/// Stored items outlive programs. To change a failure, add a version and keep reading the old ones.
#[derive(Serialize, Deserialize)]
enum Versions {
    V1(Failure),
}

/// One failure, to be put before the others.
pub(crate) fn packed(failure: &Failure) -> Result<Value, StoreError> {
    let [consumer, reason] = [&failure.consumer, &failure.reason].map(|text| Failure::cut(text));
    pack::pack(&Versions::V1(Failure { consumer, reason, ..failure.clone() }))
}

/// The column's new value, once the failure for which `new` stands is before the others.
pub(crate) fn with(dialect: Dialect, new: &str) -> String {
    let all = dialect.concat_bytes(new, "COALESCE(last_failures, X'')");
    format!("SUBSTR({all}, 1, {COLUMN_BYTES})")
}

/// The last failures, the latest first. `None`: the item has never failed.
pub(crate) fn unpack(column: Option<&[u8]>) -> Result<Vec<Failure>, StoreError> {
    let mut rest = column.unwrap_or_default();
    let mut failures = Vec::new();
    while !rest.is_empty() && failures.len() < Failure::KEPT {
        let (Versions::V1(failure), behind) = postcard::take_from_bytes(rest)
            .map_err(|error| corrupt(format!("an item's last failures: {error}")))?;
        failures.push(failure);
        rest = behind;
    }
    Ok(failures)
}

#[cfg(test)]
mod tests {
    use forebay_types::{FailureCause, Timestamp};

    use super::*;

    fn failure(attempt: u32, text: &str) -> Failure {
        Failure {
            attempt,
            consumer: text.to_owned(),
            leased_at: Timestamp::from_micros(i64::MIN),
            ended_at: Timestamp::from_micros(i64::MAX),
            cause: FailureCause::LeaseEnded,
            reason: text.to_owned(),
        }
    }

    fn bytes(failure: &Failure) -> Vec<u8> {
        let Ok(Value::Bytes(bytes)) = packed(failure) else { panic!("not bytes") };
        bytes.into()
    }

    #[test]
    fn five_are_read_whatever_lies_behind_them() {
        let longest = bytes(&failure(u32::MAX, &"x".repeat(1_000)));
        assert!(longest.len() <= FAILURE_BYTES, "{}", longest.len());
        let column: Vec<u8> = longest.repeat(6)[..COLUMN_BYTES.min(6 * longest.len())].to_vec();
        let read = unpack(Some(&column)).unwrap();
        assert_eq!(read, vec![failure(u32::MAX, &Failure::cut(&"x".repeat(1_000))); 5]);
        assert_eq!(unpack(None).unwrap(), []);
        let two = [bytes(&failure(2, "b")), bytes(&failure(1, ""))].concat();
        assert_eq!(unpack(Some(&two)).unwrap(), [failure(2, "b"), failure(1, "")]);
    }

    /// If this fails, stored failures can no longer be read. Add a version instead.
    #[test]
    fn version_one_does_not_change() {
        let stored = b"\x00\x03\x02w1\xa0\x9c\x01\x80\x89\x7a\x01\x02no";
        let expected = Failure {
            attempt: 3,
            consumer: "w1".to_owned(),
            leased_at: Timestamp::from_micros(10_000),
            ended_at: Timestamp::from_micros(1_000_000),
            cause: FailureCause::LeaseEnded,
            reason: "no".to_owned(),
        };
        assert_eq!((bytes(&expected), unpack(Some(stored)).unwrap()), (stored.to_vec(), vec![expected]));
        assert!(unpack(Some(b"\x07")).is_err());
    }
}
