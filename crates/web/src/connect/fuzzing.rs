//! Requests as JSON, as the fuzzer reads and writes them.

use std::sync::LazyLock;

use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_types::Reason;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};

use super::{json, methods};

/// The most values of a request.
const VALUES: usize = 1_000;
/// The longest refusal: it quotes so much of the request at most.
const MESSAGE_BYTES: usize = 4_096;
/// Types of requests.
const KINDS: [&str; 10] = [
    "EnqueueRequest",
    "DequeueRequest",
    "NackRequest",
    "ListItemsRequest",
    "UpdateItemRequest",
    "StartOperationRequest",
    "ApplySettingsRequest",
    "PutTopicRequest",
    "CreateTokenRequest",
    "GetHistoryRequest",
];

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| methods::pool(FILE_DESCRIPTOR_SET).expect("the descriptors are valid"));

/// Takes the first byte as a type, and the others as JSON: what is read is the same once it is written, and
/// a refusal is short.
///
/// # Panics
///
/// If that does not hold.
pub fn fuzz_json_bodies(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    let kind = KINDS[usize::from(*kind) % KINDS.len()];
    let kind = POOL.get_message_by_name(&format!("forebay.v1.{kind}")).expect("a request");
    let message = match json::read(&kind, body, VALUES) {
        Ok(message) => message,
        Err(refusal) => {
            assert!(matches!(refusal.reason, Reason::InvalidField | Reason::TooLarge), "{refusal}");
            let length = refusal.message.len() + refusal.field.map_or(0, |field| field.len());
            assert!(length <= MESSAGE_BYTES, "{length} bytes");
            return;
        }
    };
    let written = json::write(&kind, message.encode_to_vec().into()).expect("what was read can be written");
    // Fields that are not there are written with their defaults, so there may be more values.
    let again = json::read(&kind, &written, usize::MAX).expect("what was written can be read");
    // A field that has its default may be there or not.
    let plain = |message: &DynamicMessage| {
        DynamicMessage::decode(kind.clone(), message.encode_to_vec().as_slice()).expect("what was encoded")
    };
    assert!(plain(&again) == plain(&message), "written as {}", String::from_utf8_lossy(&written));
}
