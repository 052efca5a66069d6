//! Receipts: what was encoded is decoded, what is decoded was encoded so, and a damaged one is none.

use forebay_types::{ItemId, Receipt, ReceiptError, Seq, ShardId};

const NAMESPACE: &str = "tenant";

/// Takes the bytes as a receipt's text, and as the parts of one.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(receipt) = Receipt::decode(NAMESPACE, text)
    {
        assert_eq!(receipt.encode(NAMESPACE), text, "a receipt has one text");
    }
    let Some((parts, [at, with, ..])) = bytes.split_first_chunk::<24>() else { return };
    let part = |from: usize| u64::from_be_bytes(std::array::from_fn(|at| parts[from + at]));
    let item = ItemId { shard: ShardId((part(0) >> 32) as u32), seq: Seq(part(8)) };
    let receipt = Receipt { item, delivery: part(0) as u32, nonce: part(16) };
    let text = receipt.encode(NAMESPACE);
    assert!(text.len() <= 128 && text.is_ascii());
    assert_eq!(Receipt::decode(NAMESPACE, &text), Ok(receipt));
    assert_eq!(Receipt::decode("another", &text), Err(ReceiptError::Foreign));
    let mut damaged = text.clone().into_bytes();
    let at = usize::from(*at) % damaged.len();
    damaged[at] = *with & 0x7f;
    let damaged = String::from_utf8(damaged).unwrap_or_default();
    if damaged != text {
        assert_eq!(Receipt::decode(NAMESPACE, &damaged), Err(ReceiptError::Malformed), "{damaged}");
    }
}
