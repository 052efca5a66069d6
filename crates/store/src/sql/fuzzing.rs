//! Packed columns as the fuzzer reads and writes them.

use forebay_types::{Failure, Timestamp, TopicId};

use super::{
    attributes::PackedAttributes,
    failures, pack,
    value::{Value, corrupt as corrupt_value},
};
use crate::{
    error::StoreError,
    rows::{LeaseEntry, ShardTopology, TopicCounts},
    tally::{Tally, TopicTally},
};

/// The error of a column that can't be read.
pub(crate) fn corrupt(what: &str) -> StoreError {
    corrupt_value(what.to_owned())
}

fn bytes(value: Value) -> Result<Vec<u8>, StoreError> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.to_vec()),
        other => Err(corrupt(&format!("{other:?}"))),
    }
}

pub(crate) fn attributes(stored: &[u8]) -> Result<PackedAttributes, StoreError> {
    PackedAttributes::unpack(stored)
}

pub(crate) fn pack_attributes(value: &PackedAttributes) -> Result<Vec<u8>, StoreError> {
    let attributes = value.with_counters(0, 0);
    bytes(PackedAttributes::of(attributes, value.bytes, value.headers.clone())?)
}

/// As they were written: texts that are too long are cut when they are written.
pub(crate) fn failures(stored: &[u8]) -> Result<Vec<Failure>, StoreError> {
    let mut read = failures::unpack(Some(stored))?;
    for failure in &mut read {
        failure.consumer = Failure::cut(&failure.consumer);
        failure.reason = Failure::cut(&failure.reason);
    }
    Ok(read)
}

pub(crate) fn pack_failures(value: &[Failure]) -> Result<Vec<u8>, StoreError> {
    let mut all = Vec::new();
    for failure in value {
        all.extend(bytes(failures::packed(failure)?)?);
    }
    Ok(all)
}

pub(crate) fn entries(stored: &[u8]) -> Result<Vec<LeaseEntry>, StoreError> {
    pack::unpack_entries(stored)
}

pub(crate) fn pack_entries(value: &[LeaseEntry]) -> Result<Vec<u8>, StoreError> {
    bytes(pack::entries(value)?)
}

pub(crate) fn deltas(stored: &[u8]) -> Result<Vec<(TopicId, TopicCounts)>, StoreError> {
    pack::unpack_deltas(stored)
}

pub(crate) fn pack_deltas(value: &[(TopicId, TopicCounts)]) -> Result<Vec<u8>, StoreError> {
    bytes(pack::deltas(value)?)
}

pub(crate) fn tallies(stored: &[u8]) -> Result<(Timestamp, Vec<(TopicId, Tally)>), StoreError> {
    pack::unpack_tallies(stored)
}

pub(crate) fn pack_tallies((at, all): &(Timestamp, Vec<(TopicId, Tally)>)) -> Result<Vec<u8>, StoreError> {
    bytes(pack::tallies(*at, all)?)
}

pub(crate) fn tally(stored: &[u8]) -> Result<TopicTally, StoreError> {
    pack::unpack_tally(stored)
}

pub(crate) fn pack_tally(value: &TopicTally) -> Result<Vec<u8>, StoreError> {
    bytes(pack::tally(value)?)
}

pub(crate) fn topologies(stored: &[u8]) -> Result<ShardTopology, StoreError> {
    if stored.is_empty() { Err(corrupt("nothing")) } else { pack::unpack_topologies(stored) }
}

pub(crate) fn pack_topologies(value: &ShardTopology) -> Result<Vec<u8>, StoreError> {
    bytes(pack::topologies(value)?)
}

/// A bitmap of any bytes, and as many deliveries as fit, or one less.
pub(crate) fn bits(stored: &[u8]) {
    for count in (stored.len() * 8).saturating_sub(1)..=stored.len() * 8 {
        let Ok(open) = pack::unpack_bits(stored, count) else { continue };
        let written = bytes(pack::bits(&open)).unwrap_or_default();
        assert_eq!(pack::unpack_bits(&written, count).unwrap_or_default(), open);
    }
    assert!(pack::unpack_bits(stored, stored.len() * 8 + 1).is_err());
}
