//! How an operation is stored, and told to other nodes.
//!
//! What came later than the first kinds is in the text of the filter, as `?HEX?FILTER`. A program that does
//! not know it takes that for a filter that it does not understand: it keeps the part of its shard, changes
//! nothing, and lets it be cancelled. It also keeps the text where it writes the row anew.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{ShardId, Timestamp};
use serde::{Deserialize, Serialize};

use super::{OperationId, OperationKind, OperationSpec, OperationUpdate, OperationWish};

/// The kinds that the first programs know.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum StoredKind {
    Purge,
    DeleteDead,
    Redrive,
    ResetLeases,
}

/// What is stored. It never changes.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredSpec {
    /// Its id.
    id: OperationId,
    /// What it does, of the first kinds.
    kind: StoredKind,
    /// The tenant.
    namespace: String,
    /// The topic.
    topic: String,
    /// Which items, and before that what came later.
    filter: String,
    /// Leased items are purged too.
    leased: bool,
    /// Where dead letters return to.
    to_topic: String,
    /// So long after their return they expire.
    ttl: Option<Duration>,
    /// At most so many items of each shard.
    limits: Option<BTreeMap<ShardId, u64>>,
    /// The shards that have a part in it.
    shards: Vec<ShardId>,
    /// The shard whose owner sees to the others.
    home: ShardId,
    /// Who began it.
    who: String,
    /// Why.
    reason: String,
    /// When it began.
    started_at: Timestamp,
    /// A hash of the request that began it.
    request: [u8; 16],
    /// What may change while it runs.
    wish: OperationWish,
}

/// What came later. To add something, add a version and keep reading the old ones.
#[derive(Serialize, Deserialize)]
enum Later {
    V1 {
        /// What it does.
        kind: OperationKind,
        /// What items are to have.
        update: Option<OperationUpdate>,
    },
}

impl From<OperationSpec> for StoredSpec {
    fn from(spec: OperationSpec) -> Self {
        let OperationSpec { id, kind, namespace, topic, filter, leased, to_topic, ttl, update, .. } = spec;
        let OperationSpec { limits, shards, home, who, reason, started_at, request, wish, .. } = spec;
        let (stored, is_first) = match kind {
            OperationKind::Purge => (StoredKind::Purge, true),
            OperationKind::DeleteDead => (StoredKind::DeleteDead, true),
            OperationKind::Redrive => (StoredKind::Redrive, true),
            OperationKind::ResetLeases => (StoredKind::ResetLeases, true),
            // They begin where a purge does.
            OperationKind::Cancel | OperationKind::Update => (StoredKind::Purge, false),
        };
        let filter = match is_first && update.is_none() && later(&filter).is_none() {
            true => filter,
            false => with_later(&Later::V1 { kind, update }, &filter),
        };
        Self {
            id,
            kind: stored,
            namespace,
            topic,
            filter,
            leased,
            to_topic,
            ttl,
            limits,
            shards,
            home,
            who,
            reason,
            started_at,
            request,
            wish,
        }
    }
}

impl From<StoredSpec> for OperationSpec {
    fn from(stored: StoredSpec) -> Self {
        let kind = match stored.kind {
            StoredKind::Purge => OperationKind::Purge,
            StoredKind::DeleteDead => OperationKind::DeleteDead,
            StoredKind::Redrive => OperationKind::Redrive,
            StoredKind::ResetLeases => OperationKind::ResetLeases,
        };
        // What a later program wrote stays in the text, which is then no filter.
        let (kind, update, filter) = match later(&stored.filter) {
            Some((Later::V1 { kind, update }, rest)) => (kind, update, rest.to_owned()),
            None => (kind, None, stored.filter),
        };
        let StoredSpec { id, namespace, topic, leased, to_topic, ttl, limits, shards, home, .. } = stored;
        let StoredSpec { who, reason, started_at, request, wish, .. } = stored;
        Self {
            id,
            kind,
            namespace,
            topic,
            filter,
            leased,
            to_topic,
            ttl,
            update,
            limits,
            shards,
            home,
            who,
            reason,
            started_at,
            request,
            wish,
        }
    }
}

fn with_later(later: &Later, filter: &str) -> String {
    // Writing plain values into a vector can't fail.
    let bytes = postcard::to_stdvec(later).unwrap_or_default();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("?{hex}?{filter}")
}

/// `None`: there is nothing of the kind, or this program can't read it.
fn later(text: &str) -> Option<(Later, &str)> {
    let (hex, filter) = text.strip_prefix('?')?.split_once('?')?;
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Vec<u8> = hex.as_bytes().chunks(2).map(byte).collect::<Option<_>>()?;
    let (later, rest) = postcard::take_from_bytes(&bytes).ok()?;
    rest.is_empty().then_some((later, filter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{OperationDue, pack_operation, unpack_operation};

    fn spec(kind: OperationKind) -> OperationSpec {
        OperationSpec {
            id: OperationId([3; 16]),
            kind,
            namespace: "ns".to_owned(),
            topic: "t".to_owned(),
            filter: "age > 1h".to_owned(),
            leased: false,
            to_topic: String::new(),
            ttl: None,
            update: None,
            limits: None,
            shards: vec![ShardId(1)],
            home: ShardId(1),
            who: String::new(),
            reason: "why".to_owned(),
            started_at: Timestamp::from_micros(7),
            request: [0; 16],
            wish: OperationWish { version: 1, rate: 10, active: 1, cancelled: false },
        }
    }

    /// If this fails, stored operations can no longer be read.
    #[test]
    fn the_first_kinds_are_stored_as_ever() {
        let stored = b"\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\x03\
            \x02\x02ns\x01t\x08age > 1h\0\0\0\0\x01\x01\x01\0\x03why\x0e\
            \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x0a\x01\0";
        let redrive = spec(OperationKind::Redrive);
        assert_eq!(pack_operation(&redrive), stored);
        assert_eq!(unpack_operation(stored), Some(redrive));
    }

    #[test]
    fn later_kinds_are_read_as_they_were_written_and_are_no_filter_to_earlier_programs() {
        let update = OperationUpdate {
            priority: Some(-5),
            due: Some(OperationDue::Delay(Duration::from_secs(9))),
            metadata: Some(vec![0, 255, b'?']),
            ttl: None,
        };
        let update = OperationSpec { update: Some(update), ..spec(OperationKind::Update) };
        for spec in [spec(OperationKind::Cancel), update] {
            let packed = pack_operation(&spec);
            let older: StoredSpec = postcard::from_bytes(&packed).unwrap();
            assert!(older.filter.starts_with('?') && older.filter.ends_with("?age > 1h"), "{}", older.filter);
            assert!(matches!(older.kind, StoredKind::Purge));
            assert_eq!(unpack_operation(&packed), Some(spec.clone()));
            // The earlier program writes the row anew.
            let again = OperationSpec::from(StoredSpec { wish: spec.wish, ..older });
            assert_eq!(again, spec);
        }
    }

    #[test]
    fn what_a_later_program_wrote_stays_as_it_is() {
        for text in ["?7f?age > 1h", "?0?", "?zz?", "?", "?00", "?0000000000?"] {
            let filter = text.to_owned();
            let spec = OperationSpec { filter, ..spec(OperationKind::Purge) };
            let read: OperationSpec = unpack_operation(&pack_operation(&spec)).unwrap();
            assert_eq!(read, spec, "{text}");
        }
    }
}
