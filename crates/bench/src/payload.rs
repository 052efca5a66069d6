//! Items that say who they are, so that what comes out can be compared with what went in.
//!
//! A payload is a head (number, topic, priority, when it was meant to be sent) and a stretch of a random block
//! whose place follows from the number. Making and comparing one costs little more than copying it.

use anyhow::{bail, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// Bytes of a head; no payload is smaller.
pub const HEAD_BYTES: usize = 24;
/// The block is as long as the largest payload and this.
const SHIFT: usize = 4096;

/// What a payload says about its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Numbers the items of a run from 0; the items of one producer grow.
    pub number: u64,
    /// The topic it was sent to.
    pub topic: u32,
    /// The priority it was sent with.
    pub priority: u8,
    /// When it was meant to be sent, or due, in microseconds of the run.
    pub at_us: u64,
}

/// Makes and checks the payloads of a run.
#[derive(Debug)]
pub struct Payloads {
    bytes: usize,
    block: Bytes,
}

impl Payloads {
    /// Payloads of `bytes` each, which follow from `seed`.
    pub fn new(seed: u64, bytes: usize) -> anyhow::Result<Self> {
        ensure!(bytes >= HEAD_BYTES, "--item-bytes: an item has at least {HEAD_BYTES} bytes");
        let mut block = vec![0; bytes + SHIFT];
        StdRng::seed_from_u64(seed).fill_bytes(&mut block);
        Ok(Self { bytes, block: block.into() })
    }

    /// The payload of one item.
    pub fn make(&self, head: Head) -> Bytes {
        let mut payload = BytesMut::with_capacity(self.bytes);
        payload.put_u64_le(head.number);
        payload.put_u32_le(u32::from(head.priority) << 24 | head.topic);
        payload.put_u64_le(head.at_us);
        payload.put_u32_le(crc32fast::hash(&payload));
        payload.put_slice(self.tail(head.number));
        payload.freeze()
    }

    /// Reads and checks one.
    pub fn check(&self, payload: &[u8]) -> anyhow::Result<Head> {
        ensure!(payload.len() == self.bytes, "a payload of {} bytes, not {}", payload.len(), self.bytes);
        let (head, tail) = payload.split_at(HEAD_BYTES);
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        ensure!(crc32fast::hash(&head[..20]) == word(20), "a payload whose head is damaged");
        let head = Head {
            number: long(0),
            topic: word(8) & 0xff_ffff,
            priority: (word(8) >> 24) as u8,
            at_us: long(12),
        };
        if tail != self.tail(head.number) {
            bail!("the payload of item {} is damaged", head.number);
        }
        Ok(head)
    }

    fn tail(&self, number: u64) -> &[u8] {
        let from = (number % SHIFT as u64) as usize;
        &self.block[from..from + self.bytes - HEAD_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_and_damage_is_seen() {
        let payloads = Payloads::new(7, 256).unwrap();
        let head = Head { number: 123_456, topic: 99_999, priority: 7, at_us: 1 << 40 };
        let payload = payloads.make(head);
        assert_eq!(payloads.check(&payload).unwrap(), head);
        for at in 0..payload.len() {
            let mut damaged = payload.to_vec();
            damaged[at] ^= 1;
            assert!(payloads.check(&damaged).is_err(), "byte {at}");
        }
        assert!(payloads.check(&payload[1..]).is_err());
    }

    #[test]
    fn an_item_too_small_for_its_head_is_refused() {
        assert!(Payloads::new(7, HEAD_BYTES - 1).is_err());
        let payloads = Payloads::new(7, HEAD_BYTES).unwrap();
        let head = Head { number: 1, topic: 2, priority: 3, at_us: 4 };
        assert_eq!(payloads.check(&payloads.make(head)).unwrap(), head);
    }
}
