//! Page tokens of lists: a position, opaque to clients, that is valid in its own list alone.
//!
//! The checksum covers the list, its namespace and its filter. It is no signature: whoever makes a token up
//! chooses where a page begins, and nothing else. Which rows may be in it follows from the request.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_types::Refusal;

/// The first byte, which a later layout will change.
const VERSION: u8 = 1;
/// Bytes of the checksum.
const SUM_BYTES: usize = 4;

/// The list that a token belongs to.
pub struct List<'a> {
    /// The call.
    pub name: &'a str,
    /// The tenant.
    pub namespace: &'a str,
    /// Everything else that says what is in the list.
    pub query: &'a str,
}

impl List<'_> {
    /// The token for the page behind a position.
    pub fn token(&self, position: &[u8]) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend(position);
        bytes.extend(self.checksum(&bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a token of this list. `None`: the first page.
    pub fn position(&self, token: &str) -> Result<Option<Vec<u8>>, Refusal> {
        if token.is_empty() {
            return Ok(None);
        }
        let wrong = || Refusal::field("page_token", "is not a page token of this list");
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| wrong())?;
        let (content, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or_else(wrong)?;
        match content {
            [VERSION, position @ ..] if *sum == self.checksum(content) => Ok(Some(position.to_vec())),
            _ => Err(wrong()),
        }
    }

    fn checksum(&self, content: &[u8]) -> [u8; SUM_BYTES] {
        let mut hasher = crc32fast::Hasher::new();
        for part in [self.name.as_bytes(), self.namespace.as_bytes(), self.query.as_bytes(), content] {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_only_in_its_own_list() {
        let list = List { name: "ListTopics", namespace: "a", query: "topic = b" };
        let token = list.token(b"position");
        assert_eq!(list.position(&token).unwrap().as_deref(), Some(&b"position"[..]));
        assert_eq!(list.position("").unwrap(), None);
        for other in [
            List { name: "ListItems", ..list },
            List { namespace: "b", ..list },
            List { query: "topic = c", ..list },
            List { namespace: "atopic", query: " = b", ..list },
        ] {
            assert!(other.position(&token).is_err());
        }
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(list.position(&changed).unwrap_err().field.as_deref(), Some("page_token"), "{at}");
        }
        assert!(list.position("not base64!").is_err());
    }
}
