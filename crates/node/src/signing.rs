//! Signatures: HMAC-SHA256 under a key that follows from secrets, and from what is signed with it.

use sha2::{Digest as _, Sha256};

/// Bytes of a signature: the first half of it.
pub const SIGNATURE_BYTES: usize = 16;
/// The block of the hash.
const BLOCK_BYTES: usize = 64;

/// A key, from which nothing else follows.
#[derive(Clone)]
pub struct SigningKey([u8; 32]);

impl SigningKey {
    /// For one purpose, of these secrets.
    pub fn new(purpose: &str, secrets: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(purpose.as_bytes());
        hash.update([0]);
        add_parts(&mut hash, secrets);
        Self(hash.finalize().into())
    }

    /// HMAC-SHA256 over parts whose lengths are part of it.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let padded = |with: u8| {
            let mut block = [with; BLOCK_BYTES];
            block.iter_mut().zip(self.0).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let mut inner = Sha256::new_with_prefix(padded(0x36));
        add_parts(&mut inner, parts);
        let outer = Sha256::new_with_prefix(padded(0x5c)).chain_update(inner.finalize()).finalize();
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(&outer[..SIGNATURE_BYTES]);
        signature
    }
}

fn add_parts(hash: &mut Sha256, parts: &[&[u8]]) {
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_hmac_sha256() {
        // RFC 4231 has no keys of 32 bytes; this one was made with `openssl dgst -sha256 -mac hmac`.
        assert_eq!(
            SigningKey([0x0b; 32]).sign(&[]),
            [0x51, 0x77, 0xe6, 0x37, 0xaa, 0xac, 0x0b, 0x50, 0xe5, 0xdc, 0xa8, 0xbb, 0x05, 0xb0, 0xb5, 0x71]
        );
    }

    #[test]
    fn keys_of_other_purposes_and_parts_of_other_lengths_sign_otherwise() {
        let sign = |purpose, secret: &[u8], parts: &[&[u8]]| SigningKey::new(purpose, &[secret]).sign(parts);
        let one = sign("a", b"s", &[b"ab", b"c"]);
        assert_eq!(one, sign("a", b"s", &[b"ab", b"c"]));
        assert_ne!(one, sign("b", b"s", &[b"ab", b"c"]));
        assert_ne!(one, sign("a", b"t", &[b"ab", b"c"]));
        assert_ne!(one, sign("a", b"s", &[b"a", b"bc"]));
    }
}
