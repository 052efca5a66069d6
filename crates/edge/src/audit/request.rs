//! Subject of a request, in the words of its own fields. Payloads, metadata and headers are left out: fields
//! of bytes and maps are shown by their size alone.

use std::fmt::Write as _;

use prost_reflect::{DynamicMessage, FieldDescriptor, ReflectMessage as _, Value};
use prost_types::{Duration, Timestamp as ProtoTimestamp};

use super::text::clean;

/// The field that names the tenant.
const NAMESPACE: &str = "namespace";
/// The fields that say why. The first one that is there counts.
const REASONS: [&str; 2] = ["reason", "note"];
/// The fields that say what the call is about. The first one that is set counts.
const TARGETS: [&str; 10] =
    ["topic", "item_id", "item_ids", "operation_id", "token_id", "shard", "shard_id", "node", "url", "name"];
/// At most this many members of a list are shown.
const MEMBERS_MAX: usize = 20;
/// Deeper values are not shown.
const DEPTH_MAX: usize = 4;
/// Longer summaries are cut, before that is made exact.
const BYTES_MAX: usize = 4 << 10;

/// Description of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RequestDescription {
    /// The tenant that it names. Empty: none.
    pub namespace: String,
    /// The subject, as a topic or an item. May be empty.
    pub target: String,
    /// Why, in the words of the caller.
    pub reason: String,
    /// Its other fields.
    pub summary: String,
}

/// Describes a request.
pub fn describe(request: &DynamicMessage) -> RequestDescription {
    let of = |names: &[&str]| {
        let field = |name: &&str| request.descriptor().get_field_by_name(name);
        names.iter().filter_map(field).find(|field| request.has_field(field))
    };
    let (namespace, reason, target) = (of(&[NAMESPACE]), of(&REASONS), of(&TARGETS));
    let text = |field: &Option<FieldDescriptor>, max| {
        let value = field.as_ref().map(|field| request.get_field(field));
        value.map(|value| clean(&plain(&value), max)).unwrap_or_default()
    };
    let mut summary = String::new();
    for (field, value) in request.fields() {
        if ![&namespace, &reason, &target].into_iter().flatten().any(|known| *known == field) {
            add_field(&mut summary, &field, value, 0);
        }
    }
    RequestDescription {
        namespace: text(&namespace, 255),
        target: text(&target, 255),
        reason: text(&reason, 1_024),
        summary: clean(&summary, 1_024),
    }
}

/// A URL without its account, which may have a password. Any other text is as it was.
fn without_account(text: &str) -> String {
    let parts = text.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?.1)));
    parts.map_or_else(|| text.to_owned(), |(scheme, server)| format!("{scheme}://{server}"))
}

/// A text without quotes, a list of them with blanks between.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => without_account(text),
        Value::List(list) => list.iter().take(MEMBERS_MAX).map(plain).collect::<Vec<_>>().join(" "),
        other => {
            let mut text = String::new();
            add_value(&mut text, None, other, 0);
            text
        }
    }
}

fn add_field(text: &mut String, field: &FieldDescriptor, value: &Value, depth: usize) {
    if text.len() > BYTES_MAX {
        return;
    }
    if !text.is_empty() && !text.ends_with('{') {
        text.push(' ');
    }
    text.push_str(field.name());
    text.push('=');
    add_value(text, Some(field), value, depth);
}

fn add_value(text: &mut String, field: Option<&FieldDescriptor>, value: &Value, depth: usize) {
    // Writing to a String can't fail.
    let _ = match value {
        Value::Bool(it) => write!(text, "{it}"),
        Value::I32(it) => write!(text, "{it}"),
        Value::I64(it) => write!(text, "{it}"),
        Value::U32(it) => write!(text, "{it}"),
        Value::U64(it) => write!(text, "{it}"),
        Value::F32(it) => write!(text, "{it}"),
        Value::F64(it) => write!(text, "{it}"),
        Value::String(it) => {
            let shown = &it[..it.floor_char_boundary(BYTES_MAX)];
            write!(text, "{:?}", without_account(shown))
        }
        Value::Bytes(it) => write!(text, "<{} bytes>", it.len()),
        Value::Map(it) => write!(text, "<{} entries>", it.len()),
        Value::EnumNumber(number) => {
            let kind = field.map(FieldDescriptor::kind);
            let name = kind.as_ref().and_then(|kind| kind.as_enum()?.get_value(*number));
            match name {
                Some(value) => write!(text, "{}", value.name()),
                None => write!(text, "{number}"),
            }
        }
        Value::List(list) => {
            add_list(text, field, list, depth);
            Ok(())
        }
        Value::Message(message) => {
            add_message(text, message, depth);
            Ok(())
        }
    };
}

fn add_list(text: &mut String, field: Option<&FieldDescriptor>, list: &[Value], depth: usize) {
    text.push('[');
    for (index, value) in list.iter().take(MEMBERS_MAX).enumerate() {
        if text.len() > BYTES_MAX {
            break;
        }
        text.push_str(if index == 0 { "" } else { ", " });
        add_value(text, field, value, depth + 1);
    }
    if list.len() > MEMBERS_MAX {
        let _ = write!(text, ", and {} more", list.len() - MEMBERS_MAX);
    }
    text.push(']');
}

fn add_message(text: &mut String, message: &DynamicMessage, depth: usize) {
    match message.descriptor().full_name() {
        "google.protobuf.Duration" => {
            let span: Duration = message.transcode_to().unwrap_or_default();
            text.push_str(&span.to_string());
        }
        "google.protobuf.Timestamp" => {
            let time: ProtoTimestamp = message.transcode_to().unwrap_or_default();
            text.push_str(&time.to_string());
        }
        _ if depth >= DEPTH_MAX => text.push('…'),
        _ => {
            text.push('{');
            message.fields().for_each(|(field, value)| add_field(text, &field, value, depth + 1));
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1;
    use prost_reflect::{DescriptorPool, MessageDescriptor};

    use super::*;

    fn descriptor(name: &str) -> MessageDescriptor {
        let pool = DescriptorPool::decode(forebay_proto::FILE_DESCRIPTOR_SET).unwrap();
        pool.get_message_by_name(&format!("forebay.v1.{name}")).unwrap()
    }

    fn described(name: &str, request: &impl prost::Message) -> RequestDescription {
        let bytes = request.encode_to_vec();
        describe(&DynamicMessage::decode(descriptor(name), &bytes[..]).unwrap())
    }

    #[test]
    fn a_request_is_told_in_its_own_words() {
        let request = v1::PauseTopicRequest {
            namespace: "a".to_owned(),
            topic: "mail".to_owned(),
            sides: vec![v1::Side::Enqueue.into(), v1::Side::Dequeue.into(), 9],
            until: Some(ProtoTimestamp { seconds: 0, nanos: 0 }),
            note: "a\nmove".to_owned(),
            dry_run: false,
        };
        let RequestDescription { namespace, target, reason, summary } =
            described("PauseTopicRequest", &request);
        assert_eq!((namespace.as_str(), target.as_str(), reason.as_str()), ("a", "mail", "a\u{fffd}move"));
        assert_eq!(summary, "sides=[SIDE_ENQUEUE, SIDE_DEQUEUE, 9] until=1970-01-01T00:00:00Z");

        let grants = vec![v1::Grant { namespaces: "a".to_owned(), scopes: vec!["produce".to_owned()] }];
        let lifetime = Some(Duration { seconds: 90, nanos: 500_000_000 });
        let (name, reason) = ("mailer".to_owned(), String::new());
        let request = v1::CreateTokenRequest {
            namespace: "a".to_owned(),
            name,
            grants,
            lifetime,
            reason,
            ..Default::default()
        };
        let told = described("CreateTokenRequest", &request);
        assert_eq!(told.target, "mailer");
        assert_eq!(told.summary, "grants=[{namespaces=\"a\" scopes=[\"produce\"]}] lifetime=90.500s");
    }

    #[test]
    fn a_url_is_told_without_its_account() {
        let url = "mysql://forebay:sec@ret@db3:3306/s".to_owned();
        let request = v1::AddShardRequest { url, ..v1::AddShardRequest::default() };
        let told = described("AddShardRequest", &request);
        assert_eq!((told.target.as_str(), told.summary.as_str()), ("mysql://db3:3306/s", ""));
        let node = "queue1".to_owned();
        let request = v1::MoveShardRequest { shard_id: 3, node, ..v1::MoveShardRequest::default() };
        let told = described("MoveShardRequest", &request);
        assert_eq!((told.target.as_str(), told.summary.as_str()), ("3", "node=\"queue1\""));
    }

    #[test]
    fn many_members_and_long_texts_are_cut() {
        let item_ids = (0..1_000).map(|id| format!("1-{id}")).collect();
        let namespace = "n".repeat(4_000);
        let request = v1::CancelItemsRequest { namespace, item_ids, ..Default::default() };
        let told = described("CancelItemsRequest", &request);
        assert!(told.target.starts_with("1-0 1-1 ") && told.target.len() <= 255, "{}", told.target);
        assert_eq!(told.namespace.len(), 255);
        let filter = "ä\u{202e}".repeat(100_000);
        let request = v1::StartOperationRequest { filter, dry_run: true, ..Default::default() };
        let told = described("StartOperationRequest", &request);
        assert!(told.summary.len() <= 1_024 && told.summary.ends_with('…'), "{}", told.summary);
        assert!(!told.summary.contains('\u{202e}'));
    }

    #[test]
    fn what_items_carry_is_not_told() {
        let item = v1::EnqueueItem {
            topic: "t".to_owned(),
            payload: b"secret".to_vec().into(),
            metadata: b"hidden".to_vec().into(),
            headers: [("key".to_owned(), "value".to_owned())].into(),
            ..Default::default()
        };
        let request = v1::EnqueueRequest { items: vec![item], ..Default::default() };
        let told = described("EnqueueRequest", &request).summary;
        assert_eq!(told, "items=[{topic=\"t\" payload=<6 bytes> metadata=<6 bytes> headers=<1 entries>}]");
    }
}
