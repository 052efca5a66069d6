//! Page tokens of lists: a position, opaque to clients, that is valid in its own list alone, and for an hour.
//!
//! A signature covers the list, its namespace, its filter, the position and the end of the token. So a
//! position is one that a node of the cluster gave out for this very list. Which rows may be in a page
//! follows from the request alone, token or not.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_types::{Clock, Refusal, Timestamp};
use subtle::ConstantTimeEq as _;

use crate::signing::{SIGNATURE_BYTES, SigningKey};

/// The first byte, which a later layout will change.
const VERSION: u8 = 2;
/// So long a token is valid.
const VALID_FOR: Duration = Duration::from_hours(1);

/// Signs tokens, and knows whether they have ended. All nodes of a cluster have the same key.
#[derive(Clone)]
pub struct PageTokens {
    /// Signs them.
    key: SigningKey,
    /// Tells when a token ends.
    clock: Arc<dyn Clock>,
}

impl PageTokens {
    /// With a key that follows from these secrets, which all nodes of a cluster share.
    pub fn new(secrets: &[&[u8]], clock: Arc<dyn Clock>) -> Self {
        Self { key: SigningKey::new("forebay page tokens", secrets), clock }
    }
}

/// The list that a token belongs to.
#[derive(Clone, Copy)]
pub struct List<'a> {
    /// Signs its tokens.
    pub tokens: &'a PageTokens,
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
        let end = self.tokens.clock.wall().plus(VALID_FOR).as_micros();
        let mut bytes = vec![VERSION];
        bytes.extend(end.to_be_bytes());
        bytes.extend(position);
        bytes.extend(self.signature(&bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position of a token of this list. `None`: the first page.
    pub fn position(&self, token: &str) -> Result<Option<Vec<u8>>, Refusal> {
        if token.is_empty() {
            return Ok(None);
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| not_of_this_list())?;
        let (content, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or_else(not_of_this_list)?;
        if !bool::from(self.signature(content).ct_eq(signature)) {
            return Err(not_of_this_list());
        }
        let [VERSION, rest @ ..] = content else { return Err(not_of_this_list()) };
        let (end, position) = rest.split_first_chunk().ok_or_else(not_of_this_list)?;
        if self.tokens.clock.wall() >= Timestamp::from_micros(i64::from_be_bytes(*end)) {
            return Err(Refusal::field("page_token", "has ended: list again from the first page"));
        }
        Ok(Some(position.to_vec()))
    }

    fn signature(&self, content: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let Self { name, namespace, query, .. } = self;
        self.tokens.key.sign(&[name.as_bytes(), namespace.as_bytes(), query.as_bytes(), content])
    }
}

/// Refuses a page token that is not one of the list that is asked for.
pub fn not_of_this_list() -> Refusal {
    Refusal::field("page_token", "is not a page token of this list")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use forebay_types::Monotonic;

    use super::*;

    /// A clock that stands where a test puts it.
    #[derive(Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn wall(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed))
        }

        fn monotonic(&self) -> Monotonic {
            Monotonic::default()
        }
    }

    fn tokens(secret: &str) -> (PageTokens, Arc<Hand>) {
        let clock = Arc::new(Hand::default());
        (PageTokens::new(&[secret.as_bytes()], clock.clone()), clock)
    }

    fn list(tokens: &PageTokens) -> List<'_> {
        List { tokens, name: "ListTopics", namespace: "a", query: "topic = b" }
    }

    #[test]
    fn a_token_is_read_back_only_in_its_own_list() {
        let (tokens, _) = tokens("secret");
        let list = list(&tokens);
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

    #[test]
    fn nodes_with_one_secret_read_each_others_tokens_and_nobody_else_does() {
        let [(one, _), (two, _), (other, _)] = ["secret", "secret", "Secret"].map(tokens);
        let token = list(&one).token(b"position");
        assert!(list(&two).position(&token).is_ok());
        assert!(list(&other).position(&token).is_err());
    }

    #[test]
    fn a_token_ends_after_an_hour() {
        let (tokens, clock) = tokens("secret");
        let list = list(&tokens);
        let token = list.token(b"");
        clock.0.store(3_599_999_999, Ordering::Relaxed);
        assert!(list.position(&token).is_ok());
        clock.0.store(3_600_000_000, Ordering::Relaxed);
        let refusal = list.position(&token).unwrap_err();
        assert!(refusal.message.contains("has ended"), "{refusal}");
    }
}
