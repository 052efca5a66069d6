//! Messages as JSON, in the spelling of protobuf: from a request, and into an answer.

use bytes::Bytes;
use forebay_types::{Reason, Refusal};
use prost::DecodeError;
use prost_reflect::{
    DeserializeOptions, DynamicMessage, MessageDescriptor, ReflectMessage as _, SerializeOptions, Value,
};
use serde::de::{DeserializeSeed, Deserializer};
use serde_path_to_error::Track;

use super::{
    json_free_text,
    json_shape::{Check, ValueBudget},
};

/// Characters of an error's message, and of its path. They quote the request, however long that is.
const QUOTED_CHARS_MAX: usize = 300;
/// [`Check`] has refused fields that are not known, and says more of them.
const READ: DeserializeOptions = DeserializeOptions::new();
/// Defaults are written, so that scripts find every field.
const WRITE: SerializeOptions = SerializeOptions::new().skip_default_fields(false);
/// The type of a member's error.
const STATUS: &str = "google.rpc.Status";

/// Reads a request of at most `values` values.
pub fn read(kind: &MessageDescriptor, json: &[u8], values: usize) -> Result<DynamicMessage, Refusal> {
    if json.trim_ascii().is_empty() {
        return Err(Refusal::new(Reason::InvalidField, "the request is empty; an empty message is {}"));
    }
    let json = &*json_free_text::mended(json);
    let left = ValueBudget::new(values);
    tracked(json, Check::new(kind.clone(), &left)).map_err(|refusal| match left.used_up() {
        true => Refusal::new(Reason::TooLarge, format!("the request has more than {values} values")),
        false => refusal,
    })?;
    tracked(json, Reader(kind))
}

/// Writes an answer. The errors of members go without their details, which are of any type, so that clients
/// which do not know the types can read the rest.
pub fn write(kind: &MessageDescriptor, message: Bytes) -> Result<Vec<u8>, WriteError> {
    let mut json = Vec::with_capacity(message.len() + message.len() / 2);
    let mut message = DynamicMessage::decode(kind.clone(), message)?;
    drop_details(&mut message);
    message.serialize_with_options(&mut serde_json::Serializer::new(&mut json), &WRITE)?;
    Ok(json)
}

/// The same as a value, for the command line.
pub fn to_value(kind: &MessageDescriptor, message: Bytes) -> Result<serde_json::Value, WriteError> {
    let mut message = DynamicMessage::decode(kind.clone(), message)?;
    drop_details(&mut message);
    Ok(message.serialize_with_options(serde_json::value::Serializer, &WRITE)?)
}

/// An answer that can't be written: a bug.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It does not have its type.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// A value has no JSON.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Reads a message of a type.
struct Reader<'a>(&'a MessageDescriptor);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = DynamicMessage;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DynamicMessage, D::Error> {
        DynamicMessage::deserialize_with_options(self.0.clone(), deserializer, &READ)
    }
}

/// Reads a whole document. An error names the place.
fn tracked<'de, S: DeserializeSeed<'de>>(json: &'de [u8], seed: S) -> Result<S::Value, Refusal> {
    let (mut document, mut track) = (serde_json::Deserializer::from_slice(json), Track::new());
    let read = seed.deserialize(serde_path_to_error::Deserializer::new(&mut document, &mut track));
    match read.and_then(|value| document.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(error) => {
            let (message, path) = (cut(error.to_string()), cut(track.path().to_string()));
            // Where a key ends in the middle, the place in it is not known.
            Err(match path.trim_end_matches('?').trim_end_matches('.') {
                "" => Refusal::new(Reason::InvalidField, format!("cannot read the JSON: {message}")),
                path => Refusal::field(path.to_owned(), message),
            })
        }
    }
}

/// The beginning of a text that quotes the request.
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(QUOTED_CHARS_MAX) {
        text.truncate(at);
    }
    text
}

/// Drops the details of every `google.rpc.Status` in a message.
fn drop_details(message: &mut DynamicMessage) {
    if message.descriptor().full_name() == STATUS {
        message.clear_field_by_name("details");
        return;
    }
    for (_, value) in message.fields_mut() {
        match value {
            Value::Message(inner) => drop_details(inner),
            Value::List(values) => values.iter_mut().filter_map(Value::as_message_mut).for_each(drop_details),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::{
        FILE_DESCRIPTOR_SET,
        v1::{ActiveTopic, EnqueueRequest, EnqueueResponse, EnqueueResult, GetActiveTopicsResponse},
    };
    use prost::Message as _;
    use prost_reflect::DescriptorPool;
    use serde_json::{Value as Json, json};

    use super::*;

    fn kind(name: &str) -> MessageDescriptor {
        let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
        pool.get_message_by_name(&format!("forebay.v1.{name}")).unwrap()
    }

    fn enqueue(json: &str) -> Result<EnqueueRequest, Refusal> {
        let message = read(&kind("EnqueueRequest"), json.as_bytes(), 1_000)?;
        Ok(EnqueueRequest::decode(&message.encode_to_vec()[..]).unwrap())
    }

    fn item(fields: &str) -> Result<forebay_proto::v1::EnqueueItem, Refusal> {
        Ok(enqueue(&format!(r#"{{"items": [{{{fields}}}]}}"#))?.items.remove(0))
    }

    #[track_caller]
    fn refused(json: &str, field: Option<&str>, message: &str) {
        let refusal = enqueue(json).unwrap_err();
        assert_eq!(refusal.field.as_deref(), field, "{refusal}");
        assert!(refusal.message.contains(message), "{refusal}");
    }

    #[test]
    fn both_spellings_of_a_field_are_read() {
        for json in [r#"{"requestId": "r"}"#, r#"{"request_id": "r"}"#] {
            assert_eq!(enqueue(json).unwrap().request_id, "r");
        }
        assert_eq!(enqueue(r#"{"items": null}"#).unwrap(), EnqueueRequest::default());
    }

    #[test]
    fn a_field_that_does_not_exist_is_named_with_the_nearest_one() {
        for (json, path, near) in [
            (r#"{"request": "r"}"#, "request", "did you mean requestId?"),
            (r#"{"items": [{}, {"priorty": 1}]}"#, "items[1].priorty", "did you mean priority?"),
            (r#"{"items": [{"groupId": "g"}]}"#, "items[0].groupId", "there are topic, "),
            (r#"{"items": [{"Topic": "t"}]}"#, "items[0].Topic", "did you mean topic?"),
            (r#"{"new": {"a": [1, null]}}"#, "new", "there are namespace, "),
            (r#"{"new": null}"#, "new", "there are namespace, "),
            (r#"{"": 1}"#, "", "there are namespace, "),
        ] {
            let refusal = enqueue(json).unwrap_err();
            let path = Some(path).filter(|path| !path.is_empty());
            assert_eq!((refusal.reason, refusal.field.as_deref()), (Reason::InvalidField, path), "{refusal}");
            assert!(refusal.message.contains(near), "{refusal}");
        }
        let nested = r#"{"namespace": "a", "kind": 6, "update": {"delay": "1s", "prioritiy": 1}}"#;
        let refusal = read(&kind("StartOperationRequest"), nested.as_bytes(), 100).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("update.prioritiy"));
        assert!(refusal.message.contains("no field of OperationUpdate; did you mean priority?"), "{refusal}");
        assert!(item(r#""headers": {"priorty": "1"}"#).is_ok(), "its keys are free");
    }

    #[test]
    fn values_are_read_in_each_of_their_forms() {
        for text in [r#""payload": "-_8=""#, r#""payload": "+/8=""#, r#""payload": "+/8""#] {
            assert_eq!(item(text).unwrap().payload[..], [0xfb, 0xff], "{text}");
        }
        for text in [r#""priority": -7"#, r#""priority": "-7""#, r#""priority": -7.0"#] {
            assert_eq!(item(text).unwrap().priority, -7, "{text}");
        }
        for text in [r#""deliveryPolicy": 2"#, r#""delivery_policy": "DELIVERY_POLICY_AT_MOST_ONCE""#] {
            assert_eq!(item(text).unwrap().delivery_policy, 2, "{text}");
        }
        let ttl = item(r#""ttl": "3.5s""#).unwrap().ttl.unwrap();
        assert_eq!((ttl.seconds, ttl.nanos), (3, 500_000_000));
        let after = item(r#""deliverAfter": "2026-01-02T03:04:05+01:00""#).unwrap().schedule;
        let Some(forebay_proto::v1::enqueue_item::Schedule::DeliverAfter(after)) = after else { panic!() };
        assert_eq!(after.seconds, 1_767_319_445);
        assert_eq!(item(r#""headers": {"a_b": "1", "aB": "2"}"#).unwrap().headers.len(), 2);
    }

    #[test]
    fn each_wrong_value_is_named_by_its_path() {
        let items = |fields: &str| format!(r#"{{"items": [{{}}, {{{fields}}}]}}"#);
        refused(&items(r#""priority": "high""#), Some("items[1].priority"), "invalid digit");
        refused(&items(r#""priority": 3000000000"#), Some("items[1].priority"), "out of range");
        refused(&items(r#""payload": "a b""#), Some("items[1].payload"), "base64");
        refused(&items(r#""ttl": "5""#), Some("items[1].ttl"), "duration");
        refused(&items(r#""deliverAfter": "now""#), Some("items[1].deliverAfter"), "rfc3339");
        refused(
            &items(r#""deliverAfter": "2026-01-02T03:04:05""#),
            Some("items[1].deliverAfter"),
            "05+01:00",
        );
        refused(
            &items(r#""deliveryPolicy": "AT_MOST_ONCE""#),
            Some("items[1].deliveryPolicy"),
            "did you mean",
        );
        refused(&items(r#""headers": {"a": 1}"#), Some("items[1].headers.a"), "string");
        refused(
            &items(r#""deliveryPolicy": "AT_MOST_ONCE""#),
            Some("items[1].deliveryPolicy"),
            "is not one of",
        );
        refused(
            &items(r#""delay": "1s", "deliverAfter": "2026-01-02T03:04:05Z""#),
            Some("items[1]"),
            "oneof",
        );
        refused(r#"{"items": {}}"#, Some("items"), "expected");
        for (wrong, message) in [
            ("", "empty"),
            (" ", "empty"),
            ("[]", "expected"),
            ("{} x", "trailing"),
            ("{", "EOF"),
            ("{\"\u{0}", ""),
        ] {
            refused(wrong, None, message);
        }
    }

    #[test]
    fn a_reason_is_read_whatever_half_of_a_pair_is_in_it() {
        let json = br#"{"nacks": [{"receipt": "r", "reason": "no such file: a\udc80"}]}"#;
        let message = read(&kind("NackRequest"), json, 1_000).unwrap();
        let request = forebay_proto::v1::NackRequest::decode(&message.encode_to_vec()[..]).unwrap();
        assert_eq!(request.nacks[0].reason, "no such file: a\u{fffd}");
        refused(r#"{"items": [{"dedupeKey": "\udc80"}]}"#, Some("items[0].dedupeKey"), "surrogate");
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        for twice in [
            r#"{"items": [], "items": []}"#,
            r#"{"requestId": "a", "request_id": "b"}"#,
            r#"{"requestId": {"a": 1, "a": 2}}"#,
            r#"{"items": [{"headers": {"a": "1", "a": "2"}}]}"#,
        ] {
            assert!(enqueue(twice).unwrap_err().message.contains("is there twice"), "{twice}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| format!(r#"{{"requestId": {}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(enqueue(&nested(63)).unwrap_err().message.contains("expected a string"));
        assert!(enqueue(&nested(64)).unwrap_err().message.contains("more than 64 arrays"));
        assert!(enqueue(&nested(1_000_000)).unwrap_err().message.contains("more than 64 arrays"));
    }

    #[test]
    fn values_have_a_limit() {
        let many = |values: usize| format!(r#"{{"items": [{}]}}"#, vec!["{}"; values].join(","));
        assert_eq!(enqueue(&many(990)).unwrap().items.len(), 990);
        let refusal = enqueue(&many(1_000)).unwrap_err();
        assert_eq!((refusal.reason, refusal.field), (Reason::TooLarge, None));
    }

    #[test]
    fn an_error_quotes_only_the_beginning() {
        let long = "x".repeat(100_000);
        let refusal = enqueue(&format!(r#"{{"items": [{{"priority": "{long}"}}]}}"#)).unwrap_err();
        assert!(refusal.message.len() <= 300);
        let refusal = enqueue(&format!(r#"{{"{long}": {{"a": 1, "a": 1}}}}"#)).unwrap_err();
        assert!(refusal.to_string().len() <= 700);
    }

    fn written(name: &str, message: &impl prost::Message) -> Json {
        let json = write(&kind(name), message.encode_to_vec().into()).unwrap();
        serde_json::from_slice(&json).unwrap()
    }

    #[test]
    fn an_answer_has_its_defaults_and_64_bit_numbers_as_text() {
        let topic = ActiveTopic { topic: "t".into(), ready_count: 1 << 60, ..Default::default() };
        let answer = GetActiveTopicsResponse { topics: vec![topic], ..Default::default() };
        let expected = json!({
            "topics": [{
                "topic": "t", "readyCount": "1152921504606846976", "bestPriority": 0,
                "leasedCount": "0", "scheduledCount": "0",
            }],
            "nextPageToken": "", "incomplete": false,
        });
        assert_eq!(written("GetActiveTopicsResponse", &answer), expected);
    }

    #[test]
    fn the_error_of_a_member_goes_without_its_details() {
        let details = vec![prost_types::Any { type_url: "x/unknown".into(), value: vec![1] }];
        let error = forebay_proto::Status { code: 9, message: "no".into(), details };
        let delay = prost_types::Duration { seconds: 1, nanos: 500_000_000 };
        let refused = EnqueueResult {
            error: Some(error),
            reason: "LEASE_LOST".into(),
            retry_after: Some(delay),
            ..Default::default()
        };
        let answer = written("EnqueueResponse", &EnqueueResponse { results: vec![refused] });
        let expected = json!({"results": [{
            "itemId": "", "duplicate": false, "error": {"code": 9, "message": "no", "details": []},
            "reason": "LEASE_LOST", "retryAfter": "1.500s",
        }]});
        assert_eq!(answer, expected);
    }

    /// Pieces of JSON, some of them wrong wherever they stand.
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "null",
        "true",
        "0",
        "-1",
        "1e400",
        "1e10",
        "-0.5",
        "\"items\"",
        "\"topic\"",
        "\"priority\"",
        "\"payload\"",
        "\"delay\"",
        "\"deliverAfter\"",
        "\"headers\"",
        "\"shard\"",
        "\"deliveryPolicy\"",
        "\"-9223372036854775808\"",
        "\"99999999999999999999s\"",
        "\"-0.000000001s\"",
        "\"1.0000000001s\"",
        "\"s\"",
        "\"9999-12-31T23:59:60.999999999Z\"",
        "\"0000-00-00T00:00:00Z\"",
        "\"2026-02-30T24:00:00+99:99\"",
        "\"====\"",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "\u{feff}",
        "\\",
        "\n",
    ];

    #[test]
    fn nothing_that_is_sent_makes_it_panic() {
        use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
        let mut random = StdRng::seed_from_u64(7);
        let kinds = ["EnqueueRequest", "DequeueRequest", "NackRequest"].map(kind);
        let valid = r#"{"items": [{"topic": "t", "delay": "1s", "payload": "aGk=", "headers": {"a": "b"}}]}"#;
        let (mut read_well, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let mut text = valid.to_owned();
            for _ in 0..random.random_range(0..6) {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                let (from, to) = (random.random_range(0..=text.len()), random.random_range(0..12));
                let to = (from + to).min(text.len());
                if text.is_char_boundary(from) && text.is_char_boundary(to) {
                    text.replace_range(from..to, piece);
                }
            }
            match read(&kinds[random.random_range(0..kinds.len())], text.as_bytes(), 1_000) {
                Ok(message) => {
                    let (kind, bytes) = (message.descriptor(), message.encode_to_vec());
                    write(&kind, bytes.into()).unwrap_or_else(|error| panic!("{text}: {error}"));
                    read_well += 1;
                }
                Err(refusal) => {
                    assert!(!refusal.message.is_empty(), "{text}");
                    refused += 1;
                }
            }
        }
        assert!(read_well > 1_000 && refused > 1_000, "{read_well} read, {refused} refused");
    }
}
