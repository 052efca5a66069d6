//! Checks of the fuzzer on packed columns: a value that is read from any bytes is read the same once it is
//! written.

use std::fmt::Debug;

use forebay_types::{Seq, Timestamp};

use crate::{
    error::StoreError,
    operation::{
        OperationCursor, OperationKind, OperationProgress, OperationSpec, pack_operation,
        pack_operation_part, pack_operation_row, pack_position, unpack_operation, unpack_operation_part,
        unpack_operation_row, unpack_position,
    },
    sql::fuzzing,
};

/// Takes the first byte as the column, and the others as what is stored in it.
///
/// # Panics
///
/// If a value is written otherwise than it was read, or larger than it was stored.
pub fn packed_columns(bytes: &[u8]) {
    let Some((column, stored)) = bytes.split_first() else { return };
    match column % 13 {
        0 => same(stored, fuzzing::attributes, fuzzing::pack_attributes),
        1 => same(stored, fuzzing::failures, |all| fuzzing::pack_failures(all)),
        2 => again(stored, fuzzing::entries, |all| fuzzing::pack_entries(all)),
        3 => same(stored, fuzzing::deltas, |all| fuzzing::pack_deltas(all)),
        4 => same(stored, fuzzing::topologies, fuzzing::pack_topologies),
        5 => fuzzing::bits(stored),
        6 => same(stored, of_operation::<OperationSpec>, |spec| Ok(pack_operation(spec))),
        7 => same(stored, of_operation::<OperationCursor>, |cursor| Ok(pack_operation(cursor))),
        8 => same(stored, fuzzing::tallies, fuzzing::pack_tallies),
        9 => same(stored, fuzzing::tally, fuzzing::pack_tally),
        // Fields of the progress that came later may be missing in the value that is read.
        10 => again(stored, position, |progress| Ok(pack_position(progress))),
        11 => again(stored, |bytes| known(unpack_operation_row(bytes)), |row| Ok(pack_operation_row(row))),
        _ => again(stored, |bytes| known(unpack_operation_part(bytes)), |part| Ok(pack_operation_part(part))),
    }
}

/// Into a progress of which nothing else is known.
fn position(stored: &[u8]) -> Result<OperationProgress, StoreError> {
    let mut progress = OperationProgress::begin(OperationKind::Purge, (Seq(0), Timestamp::from_micros(0), 0));
    known(unpack_position(stored, &mut progress).then_some(progress))
}

fn of_operation<T: serde::de::DeserializeOwned>(stored: &[u8]) -> Result<T, StoreError> {
    known(unpack_operation(stored))
}

fn known<T>(read: Option<T>) -> Result<T, StoreError> {
    read.ok_or_else(|| fuzzing::corrupt("an operation"))
}

/// Read, written, and read again. What is written is no larger: numbers have one shortest form.
fn same<T: PartialEq + Debug>(
    stored: &[u8],
    read: impl Fn(&[u8]) -> Result<T, StoreError>,
    write: impl Fn(&T) -> Result<Vec<u8>, StoreError>,
) {
    let Ok(value) = read(stored) else { return };
    let written = write(&value).expect("what was read can be written");
    assert!(written.len() <= stored.len(), "{} bytes were read, {} written", stored.len(), written.len());
    again(stored, read, write);
}

/// Read, written, and read again.
fn again<T: PartialEq + Debug>(
    stored: &[u8],
    read: impl Fn(&[u8]) -> Result<T, StoreError>,
    write: impl Fn(&T) -> Result<Vec<u8>, StoreError>,
) {
    let Ok(value) = read(stored) else { return };
    let written = write(&value).expect("what was read can be written");
    assert_eq!(read(&written).expect("what was written can be read"), value);
}
