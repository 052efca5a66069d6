//! The columns of an item, as several queries read them.

use forebay_types::{Headers, Key};

use crate::{
    error::StoreError,
    rows::ReadyRow,
    sql::{attributes::PackedAttributes, value::Row},
};

/// The columns of a [`ReadyRow`], from the table `item` with the alias `i`.
pub(super) const ITEM: &str =
    "i.priority, i.rank_us, i.seq, i.deliveries, i.failures, i.attributes, LENGTH(i.metadata)";
/// The number of columns in [`ITEM`].
pub(super) const ITEM_COLUMNS: usize = 7;
/// Where its attributes are among them.
pub(super) const ATTRIBUTES: usize = 5;
/// Where the length of its metadata is among them.
pub(super) const METADATA_BYTES: usize = 6;

/// Decodes the columns of [`ITEM`]. The body is read on its own: see `bodies.rs`.
pub(super) fn decode(row: &Row) -> Result<ReadyRow, StoreError> {
    Ok(decode_with_headers(row)?.0)
}

/// The same, with the item's headers.
pub(super) fn decode_with_headers(row: &Row) -> Result<(ReadyRow, Headers), StoreError> {
    let packed = PackedAttributes::unpack(&row.bytes(ATTRIBUTES)?)?;
    let attributes = packed.with_counters(row.u32(3)?, row.u32(4)?);
    let item = ReadyRow {
        key: Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(2)? },
        attributes,
        bytes: packed.bytes.saturating_add(row.u32(METADATA_BYTES)?),
        body: None,
    };
    Ok((item, packed.headers))
}
