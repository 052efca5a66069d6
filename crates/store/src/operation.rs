//! Operations: one change of many items of a topic, made by the owners of all shards. Each shard keeps its
//! part in a row of its own.

mod format;

pub use format::{
    pack_operation_part, pack_operation_row, pack_position, unpack_operation_part, unpack_operation_row,
    unpack_position,
};
use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use forebay_types::{ItemAttributes, Key, Namespace, Schedule, Seq, ShardId, Timestamp, TopicId, TopicName};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// An operation, in all shards.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct OperationId(pub [u8; 16]);

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl OperationId {
    /// Returns the mark that an item keeps of the last operation that gave it other values. It tells those
    /// apart that run in a topic one after the other: of two ids one in 4 billion has the same.
    pub fn mark(&self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_be_bytes([a, b, c, d]).max(1)
    }
}

/// The string is not an operation's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an operation's id: it has 32 hexadecimal digits")]
pub struct OperationIdError;

impl FromStr for OperationId {
    type Err = OperationIdError;

    fn from_str(text: &str) -> Result<Self, OperationIdError> {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32 && is_hex);
        number.map(|number| Self(number.to_be_bytes())).ok_or(OperationIdError)
    }
}

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OperationKind {
    /// Removes items that wait, and leased ones if it is asked to.
    Purge,
    /// Deletes dead letters.
    DeleteDead,
    /// Dead letters become items again.
    Redrive,
    /// Releases leases.
    ResetLeases,
    /// Removes items, whatever state they are in.
    Cancel,
    /// Gives items that wait other values.
    Update,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Purge, Self::DeleteDead, Self::Redrive, Self::ResetLeases, Self::Cancel, Self::Update];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Purge => "purge",
            Self::DeleteDead => "delete-dead",
            Self::Redrive => "redrive",
            Self::ResetLeases => "reset-leases",
            Self::Cancel => "cancel",
            Self::Update => "update",
        }
    }

    /// It deals with dead letters.
    pub const fn is_of_dead(self) -> bool {
        matches!(self, Self::DeleteDead | Self::Redrive)
    }
}

/// Values that items that wait are to have from now on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationUpdate {
    /// Their priority.
    pub priority: Option<i32>,
    /// When they are due.
    pub due: Option<Schedule>,
    /// Their metadata.
    pub metadata: Option<Vec<u8>>,
    /// So long after their change they expire.
    pub ttl: Option<Duration>,
}

/// Specification of an operation, with its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "format::StoredSpec", into = "format::StoredSpec")]
pub struct OperationSpec {
    /// Its id.
    pub id: OperationId,
    /// Its kind.
    pub kind: OperationKind,
    /// The tenant.
    pub namespace: String,
    /// The topic.
    pub topic: String,
    /// Which items: terms joined by AND. Empty: all.
    pub filter: String,
    /// Leased items are purged too.
    pub leased: bool,
    /// The topic to which dead letters return. Empty: their own.
    pub to_topic: String,
    /// So long after their return they expire. `None`: never.
    pub ttl: Option<Duration>,
    /// Values that items are to have, of an update.
    pub update: Option<OperationUpdate>,
    /// Dead letters that were redriven so often are skipped. `None`: none is for that.
    pub max_redrives: Option<u16>,
    /// At most so many items of each shard are changed, and none of a shard that is missing. `None`: there is
    /// no limit.
    pub limits: Option<BTreeMap<ShardId, u64>>,
    /// The shards that have a part in it.
    pub shards: Vec<ShardId>,
    /// The shard whose owner sees to the others.
    pub home: ShardId,
    /// Name of the caller that began it.
    pub who: String,
    /// Why. May be empty.
    pub reason: String,
    /// When it began.
    pub started_at: Timestamp,
    /// A hash of the request that began it, and behind it its [`root`](Self::root).
    pub request: [u8; 16],
    /// The wish, which may change while it runs.
    pub wish: OperationWish,
}

/// Bytes of a request's hash.
const REQUEST_HASH_BYTES: usize = 12;

/// Wishes for an operation, which may change. The home shard's are the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationWish {
    /// Incremented by each change.
    pub version: u64,
    /// At most so many items a second are changed, over all shards.
    pub rate: u32,
    /// Among so many shards the rate is split: those that have not ended.
    pub active: u32,
    /// It is to end.
    pub cancelled: bool,
}

impl OperationSpec {
    /// The name of the request that began it: a hash of the request, and of the root from which the rights of
    /// whoever began it descend. `None`: an operator did.
    pub fn request_of(hash: [u8; 16], root: Option<[u8; 16]>) -> [u8; 16] {
        let root = root.map_or(0, |[a, b, c, d, ..]| u32::from_be_bytes([a, b, c, d]).max(1));
        let mut request = hash;
        request[REQUEST_HASH_BYTES..].copy_from_slice(&root.to_be_bytes());
        request
    }

    /// Stands for the root from which the rights of whoever began it descend. 0: an operator. Operations of
    /// programs before this was stored have roots of their own.
    pub fn root(&self) -> u32 {
        let [.., a, b, c, d] = self.request;
        u32::from_be_bytes([a, b, c, d])
    }

    /// The same request began both.
    pub fn is_same_request(&self, other: &Self) -> bool {
        self.request[..REQUEST_HASH_BYTES] == other.request[..REQUEST_HASH_BYTES]
    }

    /// The topic's name.
    pub fn name(&self) -> TopicName {
        TopicName::new(self.namespace.as_str(), self.topic.as_str())
    }

    /// The topic to which dead letters return.
    pub fn target(&self) -> TopicName {
        let topic = if self.to_topic.is_empty() { &self.topic } else { &self.to_topic };
        TopicName::new(self.namespace.as_str(), topic.as_str())
    }
}

/// Where a shard's part of an operation continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationCursor {
    /// Behind this scheduled item. Ready ones come after them.
    Scheduled(Key),
    /// Behind this ready item.
    Ready(Key),
    /// Behind this dead letter.
    Dead(TopicId, Timestamp, Seq),
    /// Behind the lease with this end.
    Leases(Timestamp, Seq),
}

impl OperationCursor {
    /// Where an operation of a kind begins.
    pub const fn first(kind: OperationKind) -> Self {
        match kind {
            OperationKind::Purge | OperationKind::Cancel | OperationKind::Update => Self::Scheduled(Key::MIN),
            OperationKind::DeleteDead | OperationKind::Redrive => {
                Self::Dead(TopicId(0), Timestamp::MIN, Seq(0))
            }
            OperationKind::ResetLeases => Self::Leases(Timestamp::MIN, Seq(0)),
        }
    }
}

/// How far a shard's part of an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationProgress {
    /// No item with a higher number is touched.
    pub as_of: Seq,
    /// No item that died later is touched.
    pub as_of_time: Timestamp,
    /// No delivery that a later batch began is touched.
    pub as_of_batch: u64,
    /// Where it continues.
    pub cursor: OperationCursor,
    /// Items that were looked at.
    pub scanned: u64,
    /// Items of these that passed the filter.
    pub matched: u64,
    /// Items of these that were changed.
    pub changed: u64,
    /// Items that did not fit any more: acked or leased meanwhile.
    pub skipped: u64,
    /// Items that could not be changed.
    pub failed: u64,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why it ended before all was done, or does not go on.
    #[serde(skip)]
    pub failure: Option<OperationFailure>,
    /// About how many items it was to look at, as of its beginning.
    #[serde(skip)]
    pub estimated: u64,
}

impl OperationProgress {
    /// Nothing is done yet of an operation of this kind. It is as of this item, time and batch.
    pub fn begin(kind: OperationKind, as_of: (Seq, Timestamp, u64)) -> Self {
        let (as_of, as_of_time, as_of_batch) = as_of;
        Self {
            as_of,
            as_of_time,
            as_of_batch,
            cursor: OperationCursor::first(kind),
            scanned: 0,
            matched: 0,
            changed: 0,
            skipped: 0,
            failed: 0,
            ended_at: None,
            failure: None,
            estimated: 0,
        }
    }
}

/// Why a shard's part of an operation does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationFailure {
    /// The topic to which dead letters return can't be made.
    Target,
    /// The program of the shard's owner does not understand the filter.
    Filter,
    /// The program of the shard's owner can't read the part.
    Unreadable,
}

/// A shard's part of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRow {
    /// Its specification.
    pub spec: OperationSpec,
    /// How far it is.
    pub progress: OperationProgress,
}

/// A shard's part of an operation, as those see it who look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationPart {
    /// The shard.
    pub shard: ShardId,
    /// The operation.
    pub id: OperationId,
    /// The wish that the shard knows.
    pub wish: OperationWish,
    /// How far it is.
    pub progress: OperationProgress,
    /// Its specification. In a list only the home shard gives it.
    pub spec: Option<Box<OperationSpec>>,
}

/// Orders to the owners of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationOrder {
    /// Begin it in its home shard.
    Begin(Box<OperationSpec>),
    /// Do a shard's part of it, or do it as it is wished now.
    Follow(Box<OperationSpec>),
    /// Change it in its home shard.
    Change {
        /// Which one.
        id: OperationId,
        /// Whose it is.
        namespace: String,
        /// How.
        change: OperationChange,
    },
}

/// A change of an operation that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationChange {
    /// It is to end.
    Cancel,
    /// At most so many items a second from now on.
    Rate(u32),
    /// Number of shards that have not ended.
    Active(u32),
}

impl OperationOrder {
    /// The operation.
    pub fn id(&self) -> OperationId {
        match self {
            Self::Begin(spec) | Self::Follow(spec) => spec.id,
            Self::Change { id, .. } => *id,
        }
    }

    /// The tenant.
    pub fn namespace(&self) -> Namespace {
        match self {
            Self::Begin(spec) | Self::Follow(spec) => spec.namespace.as_str().into(),
            Self::Change { namespace, .. } => namespace.as_str().into(),
        }
    }
}

/// Packs what nodes and shards keep of an operation. Parts only grow.
pub fn pack_operation<T: Serialize>(what: &T) -> Vec<u8> {
    // Writing plain values into a vector can't fail.
    postcard::to_stdvec(what).unwrap_or_default()
}

/// Unpacks what [`pack_operation`] packed. `None`: it was not written by this program.
pub fn unpack_operation<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// A dead letter that becomes an item again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Its topic from now on.
    pub topic: TopicId,
    /// Its place in the delivery order.
    pub key: Key,
    /// Its attributes from now on.
    pub attributes: ItemAttributes,
    /// Their stored form.
    pub packed: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = OperationId([7; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "07", &id.to_string().replace("07", "0A"), &format!("+{}", &id.to_string()[1..])] {
            assert_eq!(wrong.parse::<OperationId>(), Err(OperationIdError), "{wrong:?}");
        }
    }
}
