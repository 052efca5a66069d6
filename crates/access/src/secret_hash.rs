//! Hash of a secret, which is kept in its place.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

/// SHA-256 of a token's secret. A slow hash would protect secrets that can be guessed; these have 256 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// Of no secret.
    pub(crate) const NONE: Self = Self([0; 32]);

    /// Of a secret, as it is in the token's text.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// From 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (index, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// A hash that is kept as bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash itself. Keys of sessions are derived from it.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether both are the same. How long that takes does not tell where they differ.
    pub(crate) fn matches(&self, other: &Self) -> Choice {
        #[cfg(test)]
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0.ct_eq(&other.0)
    }

    /// How many were compared in this thread.
    #[cfg(test)]
    pub(crate) fn comparisons() -> u32 {
        COMPARISONS.get()
    }
}

#[cfg(test)]
thread_local! {
    /// See [`SecretHash::comparisons`].
    static COMPARISONS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Hexadecimal digits.
impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha_256_in_hexadecimal_digits() {
        let hash = SecretHash::of("abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash.to_string(), text);
        assert_eq!(SecretHash::from_hex(text), Some(hash));
        assert_eq!(SecretHash::from_hex(&text.to_uppercase()), Some(hash));
        for wrong in ["", "00", &text[1..], &format!("+{}", &text[1..]), &"ä".repeat(32)] {
            assert_eq!(SecretHash::from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{hash:?}"), "SecretHash(…)");
    }
}
