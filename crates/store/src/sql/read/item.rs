//! The columns of an item, as several queries read them.

use forebay_types::{Body, Key};

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

/// Decodes the columns of [`ITEM`]. With `with_body`, the payload and the metadata follow them.
pub(super) fn decode(row: &Row, with_body: bool) -> Result<ReadyRow, StoreError> {
    let packed = PackedAttributes::unpack(&row.bytes(5)?)?;
    let attributes = packed.with_counters(row.u32(3)?, row.u32(4)?);
    let body = match with_body {
        true => {
            let (payload, metadata) = (row.bytes(ITEM_COLUMNS)?, row.bytes(ITEM_COLUMNS + 1)?);
            Some(Body { payload, metadata, headers: packed.headers })
        }
        false => None,
    };
    Ok(ReadyRow {
        key: Key { priority: row.i32(0)?, rank: row.int(1)?, seq: row.seq(2)? },
        attributes,
        bytes: packed.bytes.saturating_add(row.u32(6)?),
        body,
    })
}
