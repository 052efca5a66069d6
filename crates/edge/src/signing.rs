//! Signatures: HMAC-SHA256 under a key that follows from secrets, and from what is signed with it.

use hmac::{Hmac, KeyInit as _, Mac};
use sha2::{Digest, Sha256};

/// Bytes of a signature: the first half of it.
pub const SIGNATURE_BYTES: usize = 16;

/// A key, from which nothing else follows.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// For one purpose, of these secrets.
    pub fn new(purpose: &str, secrets: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(purpose.as_bytes());
        hash.update([0]);
        with_lengths(secrets, |bytes| hash.update(bytes));
        Self::of_bytes(hash.finalize().into())
    }

    /// HMAC-SHA256 over parts whose lengths are part of it.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; SIGNATURE_BYTES] {
        let mut mac = self.0.clone();
        with_lengths(parts, |bytes| mac.update(bytes));
        let mut signature = [0; SIGNATURE_BYTES];
        signature.copy_from_slice(&mac.finalize().into_bytes()[..SIGNATURE_BYTES]);
        signature
    }

    fn of_bytes(key: [u8; 32]) -> Self {
        Self(Hmac::new_from_slice(&key).expect("a key of any length will do"))
    }
}

fn with_lengths(parts: &[&[u8]], mut update: impl FnMut(&[u8])) {
    for part in parts {
        update(&(part.len() as u64).to_be_bytes());
        update(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_hmac_sha256() {
        // RFC 4231 has no keys of 32 bytes; this one was made with `openssl dgst -sha256 -mac hmac`.
        assert_eq!(
            SigningKey::of_bytes([0x0b; 32]).sign(&[]),
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
