//! Tokens: `fby1_`, 12 digits that name the token, `_`, 43 digits of its secret, and 6 of a checksum.
//!
//! The beginning lets scanners find tokens that were published by mistake. The checksum tells a token that
//! was mistyped or cut from one that is unknown, without looking it up.

use std::fmt;

use crate::{
    base62::{encode, is_base62},
    secret_hash::SecretHash,
};

/// How every token begins. The number is the version of the form.
const PREFIX: &str = "fby1_";
/// Digits of the id.
const ID_DIGITS: usize = 12;
/// Digits of the secret: 256 bits.
const SECRET_DIGITS: usize = 43;
/// Digits of the checksum: 32 bits.
const CHECKSUM_DIGITS: usize = 6;
/// Random bytes that an id is made of.
pub const ID_BYTES: usize = 16;
/// Random bytes that a token is made of: those of its id, then those of its secret.
pub const RANDOM_BYTES: usize = ID_BYTES + SECRET_BYTES;
/// Random bytes that a secret is made of.
pub const SECRET_BYTES: usize = 32;

/// Names a token. It is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenId(String);

impl TokenId {
    /// From its text; `None` if it is no id.
    pub fn new(text: &str) -> Option<Self> {
        (text.len() == ID_DIGITS && is_base62(text)).then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Token that a caller shows. Only [`Token::reveal`] gives the secret away.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Names it.
    id: TokenId,
    /// Known to its holder alone.
    secret: String,
}

impl Token {
    /// Of random bytes, which must be the operating system's.
    pub fn of_random(bytes: &[u8; RANDOM_BYTES]) -> Self {
        let (id, secret) = bytes.split_at(RANDOM_BYTES - SECRET_BYTES);
        Self { id: TokenId(encode(id, ID_DIGITS)), secret: encode(secret, SECRET_DIGITS) }
    }

    /// Another secret under an id that is there, of random bytes as above.
    pub fn with_secret(id: TokenId, bytes: &[u8; SECRET_BYTES]) -> Self {
        Self { id, secret: encode(bytes, SECRET_DIGITS) }
    }

    /// Reads a token's text; `None` if it has another form, or its checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let (secret, checksum) = rest.split_at_checked(SECRET_DIGITS)?;
        let token = Self { id: TokenId::new(id)?, secret: secret.to_owned() };
        (is_base62(secret) && token.checksum() == checksum).then_some(token)
    }

    /// Names it.
    pub fn id(&self) -> &TokenId {
        &self.id
    }

    /// Returns the hash of its secret, which is kept.
    pub fn hash(&self) -> SecretHash {
        SecretHash::of(&self.secret)
    }

    /// The whole text, for its holder.
    pub fn reveal(&self) -> String {
        format!("{}{}", self.body(), self.checksum())
    }

    fn body(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    fn checksum(&self) -> String {
        encode(&crc32fast::hash(self.body().as_bytes()).to_be_bytes(), CHECKSUM_DIGITS)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}, …)", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(seed: u8) -> Token {
        Token::of_random(&std::array::from_fn(|index| seed.wrapping_mul(7).wrapping_add(index as u8)))
    }

    #[test]
    fn a_token_is_what_its_text_says() {
        for seed in 0..=255 {
            let token = token(seed);
            let text = token.reveal();
            assert_eq!(text.len(), 5 + 12 + 1 + 43 + 6);
            assert_eq!(Token::parse(&text), Some(token));
        }
        assert_eq!(token(0).reveal(), token(0).reveal());
        assert_ne!(token(0).id(), token(1).id());
        assert_ne!(token(0).hash(), token(1).hash());
    }

    #[test]
    fn a_token_with_any_wrong_character_is_none() {
        let text = token(3).reveal();
        for index in 0..text.len() {
            for wrong in ['0', 'Z', '_', '-', ' '] {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[index] != wrong {
                    changed[index] = wrong;
                    let changed: String = changed.into_iter().collect();
                    assert_eq!(Token::parse(&changed), None, "{changed}");
                }
            }
            assert_eq!(Token::parse(&text[..index]), None);
        }
        for wrong in [format!("{text}0"), format!(" {text}"), text.replace("fby1", "fby2"), "ä".repeat(40)] {
            assert_eq!(Token::parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_printed_of_a_token_has_no_secret() {
        let token = token(9);
        let printed = format!("{token:?}");
        assert!(printed.contains(token.id().as_str()) && !printed.contains(&token.secret[..4]), "{printed}");
    }
}
