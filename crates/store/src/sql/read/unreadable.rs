//! Rows that hold what this program can't read: bytes that changed on a disk or by hand, or a form that only
//! a later program knows. They are said and counted, and hide no other row.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use forebay_types::{ItemId, Seq, ShardId};

use crate::{
    error::StoreError,
    sql::{attributes::PackedAttributes, value::Row},
};

/// At most this many rows are known apart. Behind them, each look at one counts again.
const KNOWN_MAX: usize = 1_000;
/// The most bytes of a reason.
const REASON_BYTES: usize = 200;
/// At most this many rows have a line in the log.
const LOGGED_MAX: usize = 10;

/// The rows of a shard that could not be read.
pub(crate) struct Unreadable {
    /// The shard.
    shard: ShardId,
    /// Their items.
    known: Mutex<BTreeSet<Seq>>,
}

impl Unreadable {
    /// None so far.
    pub(crate) fn of(shard: ShardId) -> Self {
        Self { shard, known: Mutex::default() }
    }

    /// Returns an item's stored attributes. If they can't be read: their substitute, and why.
    pub(super) fn attributes(&self, seq: Seq, stored: &[u8]) -> (PackedAttributes, Option<String>) {
        match PackedAttributes::unpack(stored) {
            Ok(attributes) => (attributes, None),
            Err(error) => (PackedAttributes::unknown(), Some(self.note(Some(seq), &error))),
        }
    }

    /// Returns the rows that can be decoded. The others are left out.
    pub(super) fn rest<T>(
        &self,
        rows: &[Row],
        seq_column: usize,
        decode: impl Fn(&Row) -> Result<T, StoreError>,
    ) -> Vec<T> {
        let decoded =
            |row: &Row| decode(row).map_err(|error| self.note(row.seq(seq_column).ok(), &error)).ok();
        rows.iter().filter_map(decoded).collect()
    }

    /// Says that a row can't be read, once, and counts it. Returns why.
    pub(super) fn note(&self, seq: Option<Seq>, error: &StoreError) -> String {
        let why = error.message[..error.message.floor_char_boundary(REASON_BYTES)].to_owned();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = seq.is_none_or(|seq| known.len() >= KNOWN_MAX || known.insert(seq));
        if !is_new {
            return why;
        }
        metrics::counter!("forebay_unreadable_rows_total").increment(1);
        let (shard, many) = (self.shard, known.len());
        if many <= LOGGED_MAX {
            let item = seq.map(|seq| ItemId { shard, seq }.to_string()).unwrap_or_default();
            tracing::error!(
                shard.id = shard.0,
                item,
                "what is stored of item {item} can't be read, it is left alone: {why}"
            );
        } else if many == LOGGED_MAX + 1 {
            tracing::error!(shard.id = shard.0, "shard {shard} has more rows that can't be read");
        }
        why
    }
}
