//! Dedupe keys and request ids of tests.

use crate::shard::work::{ItemKey, RequestKey};

/// A dedupe key whose own hash has this byte everywhere.
pub(in crate::shard) fn key(byte: u8) -> Option<ItemKey> {
    Some(ItemKey { own: [byte; 16], shared: [byte ^ 0x80; 16], is_shared_taken: false })
}

/// A request id whose hash has this byte everywhere.
pub(in crate::shard) fn request(byte: u8) -> Option<RequestKey> {
    Some(RequestKey { hash: [byte; 16], names_shard: false, content: Some([byte; 16]) })
}
