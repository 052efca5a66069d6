//! What nothing searches and nothing changes of an item stands in one column: a server takes its time for each column of each
//! row, and sixteen of them cost MariaDB a tenth of what an item costs it.

use forebay_types::{DeliveryPolicy, Headers, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Value, corrupt, pack};
use crate::{ItemRow, StoreError};

/// The column `attributes` of `item` and `dead_letter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attributes {
    pub(crate) enqueued_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) lease_ms: u32,
    pub(crate) max_attempts: u32,
    pub(crate) policy: DeliveryPolicy,
    /// Bytes of the payload and of the headers; the metadata may change.
    pub(crate) bytes: u32,
    pub(crate) headers: Headers,
}

/// Items outlive programs: whoever adds to the attributes adds a version, and reads the old ones.
#[derive(Serialize, Deserialize)]
enum Versions {
    V1(Attributes),
}

impl Attributes {
    pub(crate) fn pack(item: &ItemRow) -> Result<Value, StoreError> {
        let bytes = item.body.bytes() - item.body.metadata.len();
        pack::pack(&Versions::V1(Self {
            enqueued_at: item.enqueued_at,
            expires_at: item.expires_at,
            lease_ms: item.lease_ms,
            max_attempts: item.max_attempts,
            policy: item.policy,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            headers: item.body.headers.clone(),
        }))
    }

    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self, StoreError> {
        match postcard::from_bytes(bytes) {
            Ok(Versions::V1(attributes)) => Ok(attributes),
            Err(error) => Err(corrupt(format!("an item's attributes: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, stored items can't be read any more: make a version.
    #[test]
    fn version_one_stays_as_it_is() {
        let stored = b"\x00\xa0\x9c\x01\x01\x80\x89\x7a\xb0\xea\x01\x10\x01\x09\x01\x01k\x02vv";
        let attributes = Attributes::unpack(stored).unwrap();
        let expected = Attributes {
            enqueued_at: Timestamp::from_micros(10_000),
            expires_at: Some(Timestamp::from_micros(1_000_000)),
            lease_ms: 30_000,
            max_attempts: 16,
            policy: DeliveryPolicy::AtMostOnce,
            bytes: 9,
            headers: vec![("k".to_owned(), "vv".to_owned())],
        };
        assert_eq!(attributes, expected);
        assert_eq!(postcard::to_stdvec(&Versions::V1(expected)).unwrap(), stored);
    }

    #[test]
    fn what_no_version_wrote_is_refused() {
        assert!(Attributes::unpack(b"").is_err());
        assert!(Attributes::unpack(b"\x07").is_err());
    }
}
