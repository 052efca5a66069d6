//! The page token: a position among the active topics, opaque to clients.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_engine::TopicPosition;
use forebay_types::{Refusal, Timestamp};

/// The first byte, which a later layout will change.
const VERSION: u8 = 1;
/// Version, priority, time. The topic and the checksum follow.
const HEAD_BYTES: usize = 1 + 4 + 8;

/// The token for the page after `position`, in the listing of this namespace and prefix.
pub fn encode(namespace: &str, prefix: &str, position: &TopicPosition) -> String {
    let mut bytes = vec![VERSION];
    bytes.extend(position.best_priority.to_be_bytes());
    bytes.extend(position.oldest_ready_at.as_micros().to_be_bytes());
    bytes.extend(position.topic.as_bytes());
    bytes.extend(checksum(namespace, prefix, &bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes what [`encode`] wrote for the same namespace and prefix. An empty token is the first page.
pub fn decode(namespace: &str, prefix: &str, token: &str) -> Result<Option<TopicPosition>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let position = URL_SAFE_NO_PAD.decode(token).ok().and_then(|bytes| read(namespace, prefix, &bytes));
    match position {
        Some(position) => Ok(Some(position)),
        None => Err(Refusal::field("page_token", "is not a page token of this namespace and topic_prefix")),
    }
}

fn read(namespace: &str, prefix: &str, bytes: &[u8]) -> Option<TopicPosition> {
    let (content, sum) = bytes.split_last_chunk::<4>()?;
    let (head, topic) = content.split_first_chunk::<HEAD_BYTES>()?;
    if head[0] != VERSION || *sum != checksum(namespace, prefix, content) {
        return None;
    }
    let (priority, time) = head[1..].split_first_chunk::<4>()?;
    Some(TopicPosition {
        best_priority: i32::from_be_bytes(*priority),
        oldest_ready_at: Timestamp::from_micros(i64::from_be_bytes(time.try_into().ok()?)),
        topic: str::from_utf8(topic).ok()?.into(),
    })
}

/// Covers namespace and prefix too, so that a token is invalid in another listing.
fn checksum(namespace: &str, prefix: &str, content: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    // No name has a zero byte, so the parts cannot run together.
    for part in [namespace.as_bytes(), &[0], prefix.as_bytes(), &[0], content] {
        hasher.update(part);
    }
    hasher.finalize().to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_only_for_its_own_listing() {
        let position = TopicPosition {
            best_priority: -7,
            oldest_ready_at: Timestamp::from_micros(1_700_000_000_000_001),
            topic: "orders".into(),
        };
        let token = encode("tenant", "or", &position);
        assert_eq!(decode("tenant", "or", &token).unwrap(), Some(position));
        assert_eq!(decode("tenant", "or", "").unwrap(), None);
        for (namespace, prefix) in [("other", "or"), ("tenant", ""), ("tenant", "o")] {
            assert!(decode(namespace, prefix, &token).is_err());
        }
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let refusal = decode("tenant", "or", &changed).unwrap_err();
            assert_eq!(refusal.field.as_deref(), Some("page_token"));
        }
        for wrong in ["x", "not a token", "AAAA"] {
            assert!(decode("tenant", "or", wrong).is_err());
        }
    }
}
