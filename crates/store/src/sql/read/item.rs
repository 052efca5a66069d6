//! The columns of an item, as several queries read them.

use forebay_types::{Headers, Key};

use super::unreadable::Unreadable;
use crate::{error::StoreError, rows::ReadyRow, sql::value::Row};

/// The columns of a [`ReadyRow`], from the table `item` with the alias `i`.
pub(super) const ITEM: &str =
    "i.priority, i.rank_us, i.seq, i.deliveries, i.failures, i.attributes, LENGTH(i.metadata)";
/// The number of columns in [`ITEM`].
pub(super) const ITEM_COLUMNS: usize = 7;
/// Where its attributes are among them.
pub(super) const ATTRIBUTES: usize = 5;
/// Where the length of its metadata is among them.
pub(super) const METADATA_BYTES: usize = 6;

/// Where the item's number is among them.
pub(super) const SEQ: usize = 2;

/// Decodes the columns of [`ITEM`]. The body is read on its own: see `bodies.rs`.
pub(super) fn decode(row: &Row, unreadable: &Unreadable) -> Result<ReadyRow, StoreError> {
    Ok(decode_with_headers(row, unreadable)?.0)
}

/// The same, with the item's headers.
pub(super) fn decode_with_headers(
    row: &Row,
    unreadable: &Unreadable,
) -> Result<(ReadyRow, Headers), StoreError> {
    let (packed, why) = unreadable.attributes(row.seq(SEQ)?, &row.bytes(ATTRIBUTES)?);
    let attributes = packed.with_counters(row.u32(3)?, row.u32(4)?);
    let item = ReadyRow {
        key: Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(SEQ)? },
        attributes,
        bytes: packed.bytes.saturating_add(row.u32(METADATA_BYTES)?),
        body: None,
        unreadable: why.is_some(),
    };
    Ok((item, packed.headers))
}
