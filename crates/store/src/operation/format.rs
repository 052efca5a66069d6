//! How an operation is stored, and told to other nodes.
//!
//! Fields that came later than the first kinds are in the text of the filter, as `?HEX?FILTER`. A program
//! that does not know them takes that for a filter that it does not understand: it keeps the part of its
//! shard, changes nothing, and lets it be cancelled. It also keeps the text where it writes the row anew.

use std::{collections::BTreeMap, time::Duration};

use forebay_types::{ShardId, Timestamp};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    OperationCursor, OperationFailure, OperationId, OperationKind, OperationPart, OperationProgress,
    OperationRow, OperationSpec, OperationUpdate, OperationWish,
};

/// The kinds that the first programs know.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum StoredKind {
    Purge,
    DeleteDead,
    Redrive,
    ResetLeases,
}

/// Stored form of an operation. It never changes.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredSpec {
    /// Its id.
    id: OperationId,
    /// Its kind, of the first kinds.
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
    /// Name of the caller that began it.
    who: String,
    /// Why.
    reason: String,
    /// When it began.
    started_at: Timestamp,
    /// A hash of the request that began it.
    request: [u8; 16],
    /// The wish, which may change while it runs.
    wish: OperationWish,
}

/// Fields that came later. To add one, add a version and keep reading the old ones.
#[derive(Serialize, Deserialize)]
enum Later {
    V1 {
        /// Its kind.
        kind: OperationKind,
        /// Values that items are to have.
        update: Option<OperationUpdate>,
        /// Dead letters that were redriven so often are skipped.
        max_redrives: Option<u16>,
    },
}

impl From<OperationSpec> for StoredSpec {
    fn from(spec: OperationSpec) -> Self {
        let OperationSpec { id, kind, namespace, topic, filter, leased, to_topic, ttl, update, .. } = spec;
        let OperationSpec {
            limits, shards, home, who, reason, started_at, request, wish, max_redrives, ..
        } = spec;
        let (stored, is_first) = match kind {
            OperationKind::Purge => (StoredKind::Purge, true),
            OperationKind::DeleteDead => (StoredKind::DeleteDead, true),
            OperationKind::Redrive => (StoredKind::Redrive, true),
            OperationKind::ResetLeases => (StoredKind::ResetLeases, true),
            // They begin where a purge does.
            OperationKind::Cancel | OperationKind::Update => (StoredKind::Purge, false),
        };
        let filter = match is_first && update.is_none() && max_redrives.is_none() && later(&filter).is_none()
        {
            true => filter,
            false => with_later(&Later::V1 { kind, update, max_redrives }, &filter),
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
        // Fields that a later program wrote stay in the text, which is then no filter.
        let (later, filter) = match later(&stored.filter) {
            Some((later, rest)) => (later, rest.to_owned()),
            None => (Later::V1 { kind, update: None, max_redrives: None }, stored.filter),
        };
        let Later::V1 { kind, update, max_redrives } = later;
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
            max_redrives,
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

/// Fields of a part's progress that came later. They follow behind the rest; programs that do not know them
/// read no further.
#[derive(Default, PartialEq, Serialize, Deserialize)]
struct LaterProgress {
    /// Why the part does not go on.
    failure: Option<OperationFailure>,
    /// About how many items it was to look at.
    estimated: u64,
}

impl LaterProgress {
    fn of(progress: &OperationProgress) -> Self {
        Self { failure: progress.failure, estimated: progress.estimated }
    }

    fn put(self, progress: &mut OperationProgress) {
        (progress.failure, progress.estimated) = (self.failure, self.estimated);
    }
}

/// Something, and what came later of its progress.
fn pack_with<T: Serialize>(what: &T, progress: &OperationProgress) -> Vec<u8> {
    // Writing plain values into a vector can't fail.
    postcard::to_stdvec(&(what, LaterProgress::of(progress))).unwrap_or_default()
}

/// `None`: it was not written by this program. What follows behind and is not known is left out.
fn unpack_with<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, LaterProgress)> {
    let (what, rest) = postcard::take_from_bytes(bytes).ok()?;
    Some((what, postcard::from_bytes(rest).unwrap_or_default()))
}

/// The same of something that has a progress.
fn unpack_whole<T: DeserializeOwned>(
    bytes: &[u8],
    progress: fn(&mut T) -> &mut OperationProgress,
) -> Option<T> {
    let (mut what, later) = unpack_with(bytes)?;
    later.put(progress(&mut what));
    Some(what)
}

/// Packs where a part continues, and what came later of its progress.
pub fn pack_position(progress: &OperationProgress) -> Vec<u8> {
    pack_with(&progress.cursor, progress)
}

/// Unpacks what [`pack_position`] packed, into a part's progress. `false`: it was not written by this
/// program.
pub fn unpack_position(bytes: &[u8], progress: &mut OperationProgress) -> bool {
    let Some((cursor, later)) = unpack_with::<OperationCursor>(bytes) else { return false };
    progress.cursor = cursor;
    later.put(progress);
    true
}

/// Packs a part for another node.
pub fn pack_operation_row(row: &OperationRow) -> Vec<u8> {
    pack_with(row, &row.progress)
}

/// Unpacks what [`pack_operation_row`] packed. `None`: it was not written by this program.
pub fn unpack_operation_row(bytes: &[u8]) -> Option<OperationRow> {
    unpack_whole(bytes, |row: &mut OperationRow| &mut row.progress)
}

/// Packs a part, as those see it who look, for another node.
pub fn pack_operation_part(part: &OperationPart) -> Vec<u8> {
    pack_with(part, &part.progress)
}

/// Unpacks what [`pack_operation_part`] packed. `None`: it was not written by this program.
pub fn unpack_operation_part(bytes: &[u8]) -> Option<OperationPart> {
    unpack_whole(bytes, |part: &mut OperationPart| &mut part.progress)
}

#[cfg(test)]
mod tests {
    use forebay_types::{Schedule, Seq, TopicId};

    use super::*;
    use crate::operation::{pack_operation, unpack_operation};

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
            max_redrives: None,
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
            due: Some(Schedule::Delay(Duration::from_secs(9))),
            metadata: Some(vec![0, 255, b'?']),
            ttl: None,
        };
        let update = OperationSpec { update: Some(update), ..spec(OperationKind::Update) };
        let redrive = OperationSpec { max_redrives: Some(3), ..spec(OperationKind::Redrive) };
        for spec in [spec(OperationKind::Cancel), update, redrive] {
            let packed = pack_operation(&spec);
            let older: StoredSpec = postcard::from_bytes(&packed).unwrap();
            assert!(older.filter.starts_with('?') && older.filter.ends_with("?age > 1h"), "{}", older.filter);
            let expected = if spec.kind == OperationKind::Redrive { 2 } else { 0 };
            assert_eq!(older.kind as u8, expected, "a kind that it knows");
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

    #[test]
    fn what_came_later_of_the_progress_is_not_seen_by_earlier_programs() {
        let progress = OperationProgress {
            as_of: Seq(9),
            as_of_time: Timestamp::from_micros(7),
            as_of_batch: 1,
            cursor: OperationCursor::Dead(TopicId(u32::MAX), Timestamp::MAX, Seq(u64::MAX)),
            scanned: 4,
            matched: 3,
            changed: 2,
            skipped: 1,
            failed: 0,
            ended_at: None,
            failure: Some(OperationFailure::Target),
            estimated: u64::MAX,
        };
        let row = OperationRow { spec: spec(OperationKind::Cancel), progress };
        let packed = pack_operation_row(&row);
        assert_eq!(unpack_operation_row(&packed), Some(row.clone()));
        let older = OperationProgress { failure: None, estimated: 0, ..progress };
        let as_older = OperationRow { progress: older, ..row.clone() };
        assert_eq!(unpack_operation(&packed), Some(as_older.clone()));
        assert_eq!(unpack_operation_row(&pack_operation(&row)), Some(as_older));

        let (wish, spec) = (row.spec.wish, Some(Box::new(row.spec)));
        let part = OperationPart { shard: ShardId(3), id: OperationId([1; 16]), wish, progress, spec };
        let packed = pack_operation_part(&part);
        assert_eq!(unpack_operation_part(&packed), Some(part.clone()));
        let as_older = OperationPart { progress: older, ..part.clone() };
        assert_eq!(unpack_operation_part(&pack_operation(&part)), Some(as_older));

        let position = pack_position(&progress);
        assert!(position.len() <= 64, "the column has no more: {}", position.len());
        assert_eq!(unpack_operation::<OperationCursor>(&position), Some(progress.cursor));
        let mut read = OperationProgress { cursor: OperationCursor::Leases(Timestamp::MIN, Seq(0)), ..older };
        assert!(unpack_position(&position, &mut read) && read == progress);
        assert!(!unpack_position(b"\x09", &mut read));
    }
}
