//! Compression with gzip. What is unpacked is counted and bounded while it is unpacked.

use std::{
    fmt::Display,
    io::{self, Read as _, Write as _},
};

use bytes::Bytes;
use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};
use forebay_types::{Reason, Refusal};

use super::failure::Failure;

/// Bytes that are unpacked between two looks at the limits.
const STEP_BYTES: usize = 16 << 10;

/// Unpacks at most `max` bytes. `count` is asked before bytes are kept. There is one member, as Connect has
/// it: empty ones cost much time and make nothing that would be counted.
pub fn unpack(
    packed: &[u8],
    max: usize,
    mut count: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<Bytes, Failure> {
    let mut unpacker = GzDecoder::new(packed);
    let (mut unpacked, mut step) = (Vec::new(), vec![0; STEP_BYTES]);
    let broken = |what: &dyn Display| Failure::invalid(format!("the request is not valid gzip: {what}"));
    loop {
        match unpacker.read(&mut step).map_err(|error| broken(&error))? {
            0 if unpacker.get_ref().is_empty() => return Ok(unpacked.into()),
            0 => return Err(broken(&"something is behind its end; send it as one member")),
            bytes if unpacked.len() + bytes > max => {
                let message = format!("the request has more than {max} bytes when it is unpacked");
                return Err(Refusal::new(Reason::TooLarge, message).into());
            }
            bytes => {
                count(bytes)?;
                unpacked.extend_from_slice(&step[..bytes]);
            }
        }
    }
}

/// Packs an answer, quickly rather than small.
pub fn pack(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::with_capacity(plain.len() / 2), Compression::fast());
    packer.write_all(plain)?;
    packer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked_and_counted() {
        let plain: Vec<u8> = (0..100_000u32).map(|n| (n % 251) as u8).collect();
        let mut counted = 0;
        let count = |bytes| {
            counted += bytes;
            Ok(())
        };
        assert_eq!(unpack(&pack(&plain).unwrap(), 100_000, count).unwrap(), plain);
        assert_eq!(counted, 100_000);
    }

    #[test]
    fn one_member_is_all_there_may_be() {
        let (one, none) = (pack(b"one").unwrap(), pack(b"").unwrap());
        assert_eq!(unpack(&none, 10, |_| Ok(())).unwrap(), "");
        for several in [[&one[..], &one], [&one, &none], [&none, &one], [&none, &none]] {
            let refused = unpack(&several.concat(), 10, |_| Ok(())).unwrap_err();
            assert!(refused.message().contains("something is behind its end"), "{}", refused.message());
        }
    }

    #[test]
    fn a_bomb_is_stopped_while_it_is_unpacked() {
        let bomb = pack(&vec![0; 64 << 20]).unwrap();
        assert!(bomb.len() < 1 << 20);
        let mut counted = 0;
        let count = |bytes| {
            counted += bytes;
            Ok(())
        };
        let refused = unpack(&bomb, 1 << 20, count).unwrap_err();
        assert!(refused.message().contains("more than 1048576 bytes"), "{}", refused.message());
        assert!(counted <= 1 << 20, "{counted} bytes were kept");
    }

    #[test]
    fn a_full_budget_ends_it() {
        let packed = pack(&vec![0; 1 << 20]).unwrap();
        let full = |_| Err(Refusal::new(Reason::Overloaded, "full"));
        assert!(unpack(&packed, 1 << 20, full).unwrap_err().message().contains("full"));
    }

    #[test]
    fn what_is_not_gzip_is_refused() {
        let whole = pack(b"hello hello hello").unwrap();
        for wrong in [&b"{}"[..], &whole[..whole.len() - 1], &[&whole[..], b"x"].concat()] {
            let refused = unpack(wrong, 1_000, |_| Ok(())).unwrap_err();
            assert!(refused.message().contains("not valid gzip"), "{}", refused.message());
        }
    }
}
