//! The packed column `attributes`: what no statement searches or changes of an item.
//!
//! A server spends time on each column of each row. With sixteen columns instead of one, an item costs
//! MariaDB a tenth more.

use forebay_types::{DeliveryPolicy, Headers, ItemAttributes, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    pack,
    value::{Value, corrupt},
};
use crate::{batch::ItemRow, error::StoreError};

/// The column `attributes` of `item` and `dead_letter`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedAttributes {
    /// When the item was enqueued.
    pub(crate) enqueued_at: Timestamp,
    /// When it expires.
    pub(crate) expires_at: Option<Timestamp>,
    /// Its own lease duration, in milliseconds.
    pub(crate) lease_ms: u32,
    /// How many deliveries may fail before it becomes a dead letter.
    pub(crate) max_attempts: u32,
    /// Whether it needs an ack.
    pub(crate) policy: DeliveryPolicy,
    /// Bytes of the payload and of the headers. The metadata is not included: it may change.
    pub(crate) bytes: u32,
    /// Its headers.
    pub(crate) headers: Headers,
}

/// Stored items outlive programs. To add an attribute, add a version and keep reading the old ones.
#[derive(Serialize, Deserialize)]
enum Versions {
    V1(PackedAttributes),
}

impl PackedAttributes {
    /// The column's value for an item.
    pub(crate) fn pack(item: &ItemRow) -> Result<Value, StoreError> {
        let bytes = item.body.bytes() - item.body.metadata.len();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self::of(item.attributes, bytes, item.body.headers.clone())
    }

    /// The column's value for these attributes, with the bytes of payload and headers.
    pub(crate) fn of(attributes: ItemAttributes, bytes: u32, headers: Headers) -> Result<Value, StoreError> {
        let ItemAttributes { enqueued_at, expires_at, lease_ms, max_attempts, policy, .. } = attributes;
        let all = Self { enqueued_at, expires_at, lease_ms, max_attempts, policy, bytes, headers };
        pack::pack(&Versions::V1(all))
    }

    /// Decodes the column.
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self, StoreError> {
        match postcard::from_bytes(bytes) {
            Ok(Versions::V1(attributes)) => Ok(attributes),
            Err(error) => Err(corrupt(format!("an item's attributes: {error}"))),
        }
    }

    /// The column's value with another expiry.
    pub(crate) fn repack(bytes: &[u8], expires_at: Option<Timestamp>) -> Result<Value, StoreError> {
        pack::pack(&Versions::V1(Self { expires_at, ..Self::unpack(bytes)? }))
    }

    /// The item's attributes. Its two counters have columns of their own.
    pub(crate) const fn with_counters(&self, deliveries: u32, failures: u32) -> ItemAttributes {
        ItemAttributes {
            enqueued_at: self.enqueued_at,
            expires_at: self.expires_at,
            lease_ms: self.lease_ms,
            max_attempts: self.max_attempts,
            policy: self.policy,
            deliveries,
            failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, stored items can no longer be read. Add a version instead.
    #[test]
    fn version_one_does_not_change() {
        let stored = b"\x00\xa0\x9c\x01\x01\x80\x89\x7a\xb0\xea\x01\x10\x01\x09\x01\x01k\x02vv";
        let attributes = PackedAttributes::unpack(stored).unwrap();
        let expected = PackedAttributes {
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
    fn an_unknown_version_is_refused() {
        assert!(PackedAttributes::unpack(b"").is_err());
        assert!(PackedAttributes::unpack(b"\x07").is_err());
    }
}
