//! The packed column `attributes`: what no statement searches or changes of an item.
//!
//! A server spends time on each column of each row. With sixteen columns instead of one, an item costs
//! MariaDB a tenth more.

use forebay_types::{DeliveryPolicy, Headers, ItemAttributes, Timestamp, Waits};
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
    /// Record of the operations on it.
    #[serde(skip)]
    pub(crate) operated: OperationRecord,
    /// For what it waits where it is scheduled. It follows behind that, if it is said.
    #[serde(skip)]
    pub(crate) waits: Waits,
}

/// Record of the operations on an item. It follows behind the rest, if there is anything: programs that do
/// not know it read no further, and forget it where they write the column anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OperationRecord {
    /// How often it was redriven.
    pub(crate) redrives: u16,
    /// The last one that gave it other values, in short.
    pub(crate) updated_by: u32,
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
        let ItemAttributes { redrives, updated_by, waits, .. } = attributes;
        let operated = OperationRecord { redrives, updated_by };
        Self { enqueued_at, expires_at, lease_ms, max_attempts, policy, bytes, headers, operated, waits }
            .value()
    }

    /// Stands for attributes that can't be read.
    pub(crate) const fn unknown() -> Self {
        Self {
            enqueued_at: Timestamp::from_micros(0),
            expires_at: None,
            lease_ms: 0,
            max_attempts: 0,
            policy: DeliveryPolicy::AtLeastOnce,
            bytes: 0,
            headers: Headers::new(),
            operated: OperationRecord { redrives: 0, updated_by: 0 },
            waits: Waits::Unsaid,
        }
    }

    fn value(self) -> Result<Value, StoreError> {
        let (operated, waits) = (self.operated, self.waits);
        match (operated == OperationRecord::default(), waits) {
            (true, Waits::Unsaid) => pack::pack(&Versions::V1(self)),
            (false, Waits::Unsaid) => pack::pack(&(Versions::V1(self), operated)),
            (_, waits) => pack::pack(&(Versions::V1(self), operated, waits)),
        }
    }

    /// Decodes the column.
    pub(crate) fn unpack(bytes: &[u8]) -> Result<Self, StoreError> {
        let wrong = |error| corrupt(format!("an item's attributes: {error}"));
        let (Versions::V1(mut attributes), rest) = postcard::take_from_bytes(bytes).map_err(wrong)?;
        if !rest.is_empty() {
            let (operated, rest) = postcard::take_from_bytes(rest).map_err(wrong)?;
            attributes.operated = operated;
            if !rest.is_empty() {
                attributes.waits = postcard::from_bytes(rest).map_err(wrong)?;
            }
        }
        Ok(attributes)
    }

    /// The column's value once a dead letter is redriven.
    pub(crate) fn redriven(
        bytes: &[u8],
        expires_at: Option<Timestamp>,
        redrives: u16,
    ) -> Result<Value, StoreError> {
        let before = Self::unpack(bytes)?;
        let operated = OperationRecord { redrives, ..before.operated };
        Self { expires_at, operated, ..before }.value()
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
            redrives: self.operated.redrives,
            updated_by: self.operated.updated_by,
            waits: self.waits,
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
            operated: OperationRecord::default(),
            waits: Waits::Unsaid,
        };
        assert_eq!(attributes, expected);
        assert_eq!(bytes_of(expected), stored);
    }

    fn bytes_of(attributes: PackedAttributes) -> Vec<u8> {
        let Ok(Value::Bytes(bytes)) = attributes.value() else { panic!("not bytes") };
        bytes.to_vec()
    }

    /// The program before reads the first part, and no further.
    #[test]
    fn what_operations_did_follows_behind_the_rest() {
        let stored = b"\x00\xa0\x9c\x01\x00\x80\x89\x7a\x10\x00\x09\x00";
        let before = PackedAttributes::unpack(stored).unwrap();
        assert_eq!(before.operated, OperationRecord::default());
        let operated = OperationRecord { redrives: 3, updated_by: u32::MAX };
        let after = PackedAttributes { operated, ..before.clone() };
        let bytes = bytes_of(after.clone());
        assert!(bytes.starts_with(stored) && bytes.len() > stored.len());
        assert_eq!(PackedAttributes::unpack(&bytes).unwrap(), after);
        let Versions::V1(older) = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(older, before);
        let again = PackedAttributes::redriven(&bytes, None, 4).unwrap();
        let Value::Bytes(again) = again else { panic!("not bytes") };
        let again = PackedAttributes::unpack(&again).unwrap();
        assert_eq!(
            (again.operated.redrives, again.operated.updated_by, again.expires_at),
            (4, u32::MAX, None)
        );
    }

    #[test]
    fn for_what_an_item_waits_follows_behind_that() {
        let stored = b"\x00\xa0\x9c\x01\x00\x80\x89\x7a\x10\x00\x09\x00";
        let before = PackedAttributes::unpack(stored).unwrap();
        for (redrives, waits) in [(0, Waits::Span), (3, Waits::Span), (0, Waits::Point), (3, Waits::Unsaid)] {
            let operated = OperationRecord { redrives, updated_by: 0 };
            let after = PackedAttributes { operated, waits, ..before.clone() };
            let bytes = bytes_of(after.clone());
            assert_eq!(PackedAttributes::unpack(&bytes).unwrap(), after);
            // The programs before read the first parts, and no further.
            let (Versions::V1(older), rest) = postcard::take_from_bytes(&bytes).unwrap();
            assert_eq!((older, postcard::from_bytes(rest)), (before.clone(), Ok(operated)));
        }
    }

    #[test]
    fn an_unknown_version_is_refused() {
        assert!(PackedAttributes::unpack(b"").is_err());
        assert!(PackedAttributes::unpack(b"\x07").is_err());
    }
}
