//! Payloads that follow from a number.

use bytes::Bytes;

use crate::fake::{Dice, POISON};

/// The payload of an item: its number, then bytes that depend on it. Most are short, a few are long.
pub fn payload(tag: u64, poison: bool) -> Bytes {
    let mut bytes = if poison { POISON.to_vec() } else { Vec::new() };
    bytes.extend(tag.to_be_bytes());
    let mut dice = Dice::new(tag);
    let long = dice.chance(100);
    let length = dice.within(0, if long { 4_000 } else { 60 });
    bytes.extend((0..length).map(|at| (tag.wrapping_mul(31).wrapping_add(at) % 251) as u8));
    bytes.into()
}

/// The metadata of an item as it is sent: every third has none.
pub fn metadata(tag: u64) -> Bytes {
    if tag.is_multiple_of(3) { Bytes::new() } else { format!("metadata of #{tag}").into() }
}

/// The number of an intact payload.
pub fn tag_of(bytes: &[u8]) -> Option<u64> {
    let poison = bytes.starts_with(POISON);
    let rest = if poison { &bytes[POISON.len()..] } else { bytes };
    let tag = u64::from_be_bytes(rest.get(..8)?.try_into().ok()?);
    (payload(tag, poison) == bytes).then_some(tag)
}
