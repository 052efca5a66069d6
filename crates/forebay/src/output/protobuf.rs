//! JSON of messages, as the JSON over HTTP of a node has it.

use std::sync::LazyLock;

use anyhow::{Context as _, anyhow};
use forebay_proto::FILE_DESCRIPTOR_SET;
use forebay_web::{json_value, read_json};
use prost::Message;
use prost_reflect::DescriptorPool;
use serde_json::Value;

/// All messages.
static POOL: LazyLock<Result<DescriptorPool, String>> =
    LazyLock::new(|| DescriptorPool::decode(FILE_DESCRIPTOR_SET).map_err(|error| error.to_string()));

/// A message of `forebay.v1` as JSON, as a node writes it. Fails only if `kind` is not its type: a bug.
pub fn to_json(kind: &str, message: &impl Message) -> anyhow::Result<Value> {
    let pool = POOL.as_ref().map_err(|error| anyhow::anyhow!("the descriptors: {error}"))?;
    let kind = pool.get_message_by_name(&format!("forebay.v1.{kind}")).context(kind.to_owned())?;
    Ok(json_value(&kind, message.encode_to_vec().into())?)
}

/// More values are in no document.
const VALUES_MAX: usize = 1_000_000;

/// A message of `forebay.v1` from JSON, read and refused as a node does it.
pub fn from_json<M: Message + Default>(kind: &str, text: &str) -> anyhow::Result<M> {
    let pool = POOL.as_ref().map_err(|error| anyhow::anyhow!("the descriptors: {error}"))?;
    let kind = pool.get_message_by_name(&format!("forebay.v1.{kind}")).context(kind.to_owned())?;
    let message = read_json(&kind, text.as_bytes(), VALUES_MAX).map_err(|refusal| anyhow!("{refusal}"))?;
    Ok(M::decode(message.encode_to_vec().as_slice())?)
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_does_not_exist_is_named_with_its_place() {
        let text = r#"{"entries": [{"namespace": "a", "settings": {"retrydelay": "1s"}}]}"#;
        let error =
            from_json::<v1::ExportSettingsResponse>("ExportSettingsResponse", text).unwrap_err().to_string();
        assert!(
            error.contains("entries[0].settings.retrydelay: ") && error.contains("retryDelay?"),
            "{error}"
        );
    }

    #[test]
    fn every_field_is_there_under_its_json_name() {
        let topic = v1::ActiveTopic { topic: "t".to_owned(), ready_count: 1 << 60, ..Default::default() };
        let expected = json!({
            "topic": "t", "readyCount": "1152921504606846976", "bestPriority": 0,
            "leasedCount": "0", "scheduledCount": "0",
        });
        assert_eq!(to_json("ActiveTopic", &topic).unwrap(), expected);
        assert!(to_json("Nothing", &topic).is_err());
    }

    #[test]
    fn errors_of_members_are_written_without_their_details() {
        let type_url = "type.googleapis.com/google.rpc.ErrorInfo".to_owned();
        let details = vec![prost_types::Any { type_url, value: Vec::new() }];
        let error = Some(forebay_proto::Status { code: 5, message: "gone".to_owned(), details });
        let result = v1::CancelItemResult { error, ..Default::default() };
        let written = to_json("CancelItemResult", &result).unwrap();
        assert_eq!(written["error"], json!({"code": 5, "message": "gone", "details": []}));
    }
}
