//! Lists that are packed into one column.

use forebay_types::{Timestamp, TopicId};

use super::value::{Value, corrupt};
use crate::{
    error::{ErrorClass, StoreError},
    rows::{LeaseEntry, ShardTopology, TopicCounts},
    tally::{Exits, Tally, TopicTally},
};

/// Packs the deliveries of a lease row. When they began, and in which batch, follows at the end: programs
/// that do not know that read no further.
pub(crate) fn entries(entries: &[LeaseEntry]) -> Result<Value, StoreError> {
    let began: Vec<_> = entries.iter().map(|entry| (entry.began, entry.leased_at)).collect();
    pack(&(entries, began))
}

/// Unpacks what [`entries`] packed. An older program's rows do not say when a delivery began: it counts as
/// not extended, and as begun before all batches.
pub(crate) fn unpack_entries(bytes: &[u8]) -> Result<Vec<LeaseEntry>, StoreError> {
    let wrong = |error| corrupt(format!("lease entries: {error}"));
    let (mut entries, rest): (Vec<LeaseEntry>, _) = postcard::take_from_bytes(bytes).map_err(wrong)?;
    if rest.is_empty() {
        entries.iter_mut().for_each(|entry| entry.leased_at = entry.deadline.minus(entry.attributes.lease()));
    } else {
        let began: Vec<_> = postcard::from_bytes(rest).map_err(wrong)?;
        entries.iter_mut().zip(began).for_each(|(entry, it)| (entry.began, entry.leased_at) = it);
    }
    Ok(entries)
}

/// Packs a batch's changes of counts.
pub(crate) fn deltas(deltas: &[(TopicId, TopicCounts)]) -> Result<Value, StoreError> {
    pack(deltas)
}

/// Unpacks what [`deltas`] packed.
pub(crate) fn unpack_deltas(bytes: &[u8]) -> Result<Vec<(TopicId, TopicCounts)>, StoreError> {
    postcard::from_bytes(bytes).map_err(|error| corrupt(format!("count deltas: {error}")))
}

/// Packs what a batch counts of items and deliveries. How items left otherwise than by an ack follows at the
/// end, if some did: programs that do not know that read no further.
pub(crate) fn tallies(at: Timestamp, tallies: &[(TopicId, Tally)]) -> Result<Value, StoreError> {
    let exits: Vec<Exits> = tallies.iter().map(|(_, tally)| tally.exits()).collect();
    match exits.iter().all(|exits| *exits == Exits::default()) {
        true => pack(&(at, tallies)),
        false => pack(&(at, tallies, exits)),
    }
}

/// Unpacks what [`tallies`] packed, or a program of before.
pub(crate) fn unpack_tallies(bytes: &[u8]) -> Result<(Timestamp, Vec<(TopicId, Tally)>), StoreError> {
    let wrong = |error| corrupt(format!("tallies: {error}"));
    let ((at, mut tallies), rest) =
        postcard::take_from_bytes::<(Timestamp, Vec<(TopicId, Tally)>)>(bytes).map_err(wrong)?;
    if !rest.is_empty() {
        let exits: Vec<Exits> = postcard::from_bytes(rest).map_err(wrong)?;
        if exits.len() != tallies.len() {
            return Err(corrupt(format!("tallies of {} topics and of {}", tallies.len(), exits.len())));
        }
        tallies.iter_mut().zip(exits).for_each(|((_, tally), exits)| *tally = tally.with_exits(exits));
    }
    Ok((at, tallies))
}

/// Packs a topic's tally, as [`tallies`] packs many.
pub(crate) fn tally(tally: &TopicTally) -> Result<Value, StoreError> {
    match tally.tally.exits() {
        (0, 0) => pack(tally),
        exits => pack(&(tally, exits)),
    }
}

/// Unpacks what [`tally`] packed, or a program of before.
pub(crate) fn unpack_tally(bytes: &[u8]) -> Result<TopicTally, StoreError> {
    let wrong = |error| corrupt(format!("a tally: {error}"));
    let (mut read, rest) = postcard::take_from_bytes::<TopicTally>(bytes).map_err(wrong)?;
    if !rest.is_empty() {
        read.tally = read.tally.with_exits(postcard::from_bytes(rest).map_err(wrong)?);
    }
    Ok(read)
}

/// Packs the topology history.
pub(crate) fn topologies(history: &ShardTopology) -> Result<Value, StoreError> {
    pack(history)
}

/// Unpacks what [`topologies`] packed. The column is empty before the first owner.
pub(crate) fn unpack_topologies(bytes: &[u8]) -> Result<ShardTopology, StoreError> {
    if bytes.is_empty() {
        return Ok(ShardTopology::default());
    }
    postcard::from_bytes(bytes).map_err(|error| corrupt(format!("topology history: {error}")))
}

/// Packs a bitmap, lowest bit first.
pub(crate) fn bits(open: &[bool]) -> Value {
    let byte = |chunk: &[bool]| chunk.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    Value::from(open.chunks(8).map(byte).collect::<Vec<_>>())
}

/// Unpacks what [`bits`] packed.
pub(crate) fn unpack_bits(bytes: &[u8], count: usize) -> Result<Vec<bool>, StoreError> {
    if bytes.len() != count.div_ceil(8) {
        return Err(corrupt(format!("a bitmap of {} bytes for {count} deliveries", bytes.len())));
    }
    Ok((0..count).map(|bit| bytes[bit / 8] >> (bit % 8) & 1 == 1).collect())
}

/// Packs any value.
pub(crate) fn pack<T: serde::Serialize + ?Sized>(what: &T) -> Result<Value, StoreError> {
    let bytes = postcard::to_stdvec(what);
    bytes.map(Value::from).map_err(|error| StoreError::new(ErrorClass::Poison, error.to_string()))
}

#[cfg(test)]
mod tests {
    use forebay_types::{DeliveryPolicy, ItemAttributes, Seq, Timestamp};

    use super::*;

    #[test]
    fn deliveries_are_read_as_they_were_written_by_this_program_and_the_one_before() {
        let attributes = ItemAttributes {
            enqueued_at: Timestamp::from_micros(1),
            expires_at: None,
            lease_ms: 30_000,
            max_attempts: 16,
            policy: DeliveryPolicy::AtLeastOnce,
            deliveries: 2,
            failures: 1,
            redrives: 0,
            updated_by: 0,
            waits: forebay_types::Waits::Unsaid,
        };
        let entry = |seq| LeaseEntry {
            seq: Seq(seq),
            topic: TopicId(1),
            priority: -3,
            rank: 9,
            attributes,
            bytes: 5,
            nonce: seq * 7,
            deadline: Timestamp::from_micros(40_000_000),
            consumer: "c".to_owned(),
            began: seq + 100,
            leased_at: Timestamp::from_micros(11),
        };
        let written = [entry(1), entry(2)];
        let Value::Bytes(bytes) = entries(&written).unwrap() else { panic!("not bytes") };
        assert_eq!(unpack_entries(&bytes).unwrap(), written);
        // The one before wrote the list alone, and reads it alone.
        let Value::Bytes(older) = pack(written.as_slice()).unwrap() else { panic!("not bytes") };
        assert!(bytes.starts_with(&older));
        let read = unpack_entries(&older).unwrap();
        let leased_at = Timestamp::from_micros(10_000_000);
        assert_eq!(read, written.map(|entry| LeaseEntry { began: 0, leased_at, ..entry }));
    }

    #[test]
    fn a_tally_is_read_as_it_was_written_by_this_program_and_the_one_before() {
        let before = Tally { enqueued: 9, acked: 4, failed: -1, ..Tally::default() };
        let tally = Tally { expired: 3, removed: 2, ..before };
        let at = Timestamp::from_micros(7);
        let written = [(TopicId(1), tally), (TopicId(2), before)];
        let bytes = |value| match value {
            Ok(Value::Bytes(bytes)) => bytes.to_vec(),
            other => panic!("{other:?}"),
        };
        let (list, one) =
            (bytes(tallies(at, &written)), bytes(super::tally(&TopicTally { since: at, tally })));
        assert_eq!(unpack_tallies(&list).unwrap(), (at, written.to_vec()));
        assert_eq!(unpack_tally(&one).unwrap(), TopicTally { since: at, tally });
        // The one before wrote six figures, and reads these alone.
        let six = [9, 4, 0, -1, 0, 0];
        let (older_list, older_one) =
            (bytes(pack(&(at, [(TopicId(1), six), (TopicId(2), six)].as_slice()))), bytes(pack(&(at, six))));
        assert!(list.starts_with(&older_list) && one.starts_with(&older_one));
        assert_eq!(unpack_tallies(&older_list).unwrap().1, written.map(|(topic, _)| (topic, before)));
        assert_eq!(unpack_tally(&older_one).unwrap(), TopicTally { since: at, tally: before });
        // Nothing more is written where nothing more is counted.
        assert_eq!(bytes(super::tally(&TopicTally { since: at, tally: before })), older_one);
        assert!(unpack_tallies(&[&older_list[..], &[1, 2, 2]].concat()).is_err(), "of one topic, not of two");
    }

    #[test]
    fn a_bitmap_is_read_as_it_was_written() {
        for count in [0, 1, 7, 8, 9, 1000] {
            let open: Vec<bool> = (0..count).map(|n| n % 3 == 0 || n % 7 == 1).collect();
            let Value::Bytes(bytes) = bits(&open) else { panic!("not bytes") };
            assert_eq!(unpack_bits(&bytes, count).unwrap(), open);
        }
        assert!(unpack_bits(&[0], 9).is_err());
    }
}
