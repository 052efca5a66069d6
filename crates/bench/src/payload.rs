//! Payloads that identify their item, so that each delivery can be checked.
//!
//! A payload is a header (number, topic, priority, intended time of sending) and a slice of a random block.
//! The number decides which slice. Making and checking a payload costs little more than copying it.

use anyhow::{bail, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

/// Bytes of a header, which is the smallest payload.
pub const HEADER_BYTES: usize = 24;
/// Number of different slices of the block.
const OFFSETS: usize = 4096;

/// Statements of a payload about its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the item in its run, from 0. The numbers of one producer increase.
    pub number: u64,
    /// The topic it was sent to.
    pub topic: u32,
    /// The priority it was sent with.
    pub priority: u8,
    /// When it should be sent, or is due, in microseconds since the start of the run.
    pub at_us: u64,
}

/// Makes and checks the payloads of a run.
#[derive(Debug)]
pub struct Payloads {
    /// Bytes per payload.
    bytes: usize,
    /// The random block.
    block: Bytes,
}

impl Payloads {
    /// Payloads of `bytes` each; `seed` decides their content.
    pub fn new(seed: u64, bytes: usize) -> anyhow::Result<Self> {
        ensure!(bytes >= HEADER_BYTES, "--item-bytes: must be at least {HEADER_BYTES}");
        let mut block = vec![0; bytes + OFFSETS];
        StdRng::seed_from_u64(seed).fill_bytes(&mut block);
        Ok(Self { bytes, block: block.into() })
    }

    /// The payload of one item.
    pub fn make(&self, header: Header) -> Bytes {
        let mut payload = BytesMut::with_capacity(self.bytes);
        payload.put_u64_le(header.number);
        payload.put_u32_le(u32::from(header.priority) << 24 | header.topic);
        payload.put_u64_le(header.at_us);
        payload.put_u32_le(crc32fast::hash(&payload));
        payload.put_slice(self.tail(header.number));
        payload.freeze()
    }

    /// Checks a payload and returns its header.
    pub fn check(&self, payload: &[u8]) -> anyhow::Result<Header> {
        ensure!(
            payload.len() == self.bytes,
            "a payload has {} bytes instead of {}",
            payload.len(),
            self.bytes
        );
        let (header, tail) = payload.split_at(HEADER_BYTES);
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        ensure!(crc32fast::hash(&header[..20]) == word(20), "the header of a payload is corrupt");
        let header = Header {
            number: long(0),
            topic: word(8) & 0xff_ffff,
            priority: (word(8) >> 24) as u8,
            at_us: long(12),
        };
        if tail != self.tail(header.number) {
            bail!("the payload of item {} is corrupt", header.number);
        }
        Ok(header)
    }

    fn tail(&self, number: u64) -> &[u8] {
        let from = (number % OFFSETS as u64) as usize;
        &self.block[from..from + self.bytes - HEADER_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_in_comes_out_and_damage_is_seen() {
        let payloads = Payloads::new(7, 256).unwrap();
        let header = Header { number: 123_456, topic: 99_999, priority: 7, at_us: 1 << 40 };
        let payload = payloads.make(header);
        assert_eq!(payloads.check(&payload).unwrap(), header);
        for at in 0..payload.len() {
            let mut damaged = payload.to_vec();
            damaged[at] ^= 1;
            assert!(payloads.check(&damaged).is_err(), "byte {at}");
        }
        assert!(payloads.check(&payload[1..]).is_err());
    }

    #[test]
    fn an_item_too_small_for_its_head_is_refused() {
        assert!(Payloads::new(7, HEADER_BYTES - 1).is_err());
        let payloads = Payloads::new(7, HEADER_BYTES).unwrap();
        let header = Header { number: 1, topic: 2, priority: 3, at_us: 4 };
        assert_eq!(payloads.check(&payloads.make(header)).unwrap(), header);
    }
}
