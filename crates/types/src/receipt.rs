//! Receipts: the name of one delivery, as clients carry it.

use std::hash::Hasher as _;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use siphasher::sip::SipHasher13;

use crate::{ItemId, Seq, ShardId};

const VERSION: u8 = 1;
/// version, namespace tag, shard, seq, delivery, nonce, checksum
const BYTES: usize = 1 + 8 + 4 + 8 + 4 + 8 + 4;

/// One delivery of one item. Whether it is malformed or foreign is known from the string alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The delivered item.
    pub item: ItemId,
    /// The number of the delivery, from 1.
    pub delivery: u32,
    /// Random, so that a receipt can't be guessed or made up.
    pub nonce: u64,
}

/// A string that is not a receipt for the namespace at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// No receipt of this system.
    #[error("not a receipt")]
    Malformed,
    /// A receipt of another namespace.
    #[error("a receipt of another namespace")]
    Foreign,
}

impl Receipt {
    /// The string that clients carry: 50 characters of URL-safe base64.
    pub fn encode(&self, namespace: &str) -> String {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend(tag(namespace).to_be_bytes());
        bytes.extend(self.item.shard.0.to_be_bytes());
        bytes.extend(self.item.seq.0.to_be_bytes());
        bytes.extend(self.delivery.to_be_bytes());
        bytes.extend(self.nonce.to_be_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Reads what [`Receipt::encode`] wrote for the same namespace.
    pub fn decode(namespace: &str, text: &str) -> Result<Self, ReceiptError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ReceiptError::Malformed)?;
        let bytes: &[u8; BYTES] = bytes.as_slice().try_into().map_err(|_| ReceiptError::Malformed)?;
        let (content, checksum) = bytes.split_at(BYTES - 4);
        if bytes[0] != VERSION || checksum != crc32fast::hash(content).to_be_bytes() {
            return Err(ReceiptError::Malformed);
        }
        if u64::from_be_bytes(part(content, 1)) != tag(namespace) {
            return Err(ReceiptError::Foreign);
        }
        Ok(Self {
            item: ItemId {
                shard: ShardId(u32::from_be_bytes(part(content, 9))),
                seq: Seq(u64::from_be_bytes(part(content, 13))),
            },
            delivery: u32::from_be_bytes(part(content, 21)),
            nonce: u64::from_be_bytes(part(content, 25)),
        })
    }
}

fn part<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[from..from + N]);
    part
}

/// A namespace's tag: SipHash-1-3 with a zero key. It tells namespaces apart, it keeps no secret.
fn tag(namespace: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(namespace.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        Receipt {
            item: ItemId { shard: ShardId(7), seq: Seq(1 << 40) },
            delivery: 3,
            nonce: 0x0123_4567_89ab_cdef,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let text = receipt().encode("tenant");
        assert!(text.len() <= 128);
        assert_eq!(Receipt::decode("tenant", &text), Ok(receipt()));
    }

    #[test]
    fn another_namespace_is_told_apart() {
        assert_eq!(Receipt::decode("other", &receipt().encode("tenant")), Err(ReceiptError::Foreign));
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let text = receipt().encode("tenant");
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(Receipt::decode("tenant", &changed), Err(ReceiptError::Malformed), "{at}");
        }
        for wrong in ["", "x", "not a receipt", &text[1..]] {
            assert_eq!(Receipt::decode("tenant", wrong), Err(ReceiptError::Malformed), "{wrong:?}");
        }
    }
}
