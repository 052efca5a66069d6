//! Lets a shard take no more new items, or ends that.

use axum::response::Response;
use forebay_proto::v1::DrainShardRequest;

use super::super::{act, asked::PageRequest, notice::told, trouble::Trouble};

/// Serves `POST /drain-shard`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(drain(&asked).await)
}

async fn drain(asked: &PageRequest) -> Result<String, Trouble> {
    let id = asked.fields.get("id");
    let undo = undoes(asked.fields.get("undo"))?;
    let request = DrainShardRequest {
        shard_id: shard_id(id)?,
        undo,
        reason: asked.fields.get("reason").to_owned(),
        ..DrainShardRequest::default()
    };
    asked.ask(request).await?;
    Ok(told("shards", &[("id", id)], if undo { "shard-active" } else { "drained" }))
}

/// The shard that a form names.
pub fn shard_id(text: &str) -> Result<u32, Trouble> {
    match text.parse() {
        Ok(id) if id > 0 => Ok(id),
        _ => Err(Trouble::field("id", "must be the number of a shard")),
    }
}

/// Whether a form undoes what it is for.
pub fn undoes(text: &str) -> Result<bool, Trouble> {
    match text {
        "" => Ok(false),
        "yes" => Ok(true),
        _ => Err(Trouble::field("undo", "must be yes, or be absent")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_its_shard_and_whether_it_undoes() {
        assert_eq!(shard_id("3").unwrap(), 3);
        for wrong in ["", "0", "-1", "3a", "4294967296"] {
            assert!(shard_id(wrong).is_err(), "{wrong}");
        }
        assert_eq!([undoes("").unwrap(), undoes("yes").unwrap()], [false, true]);
        assert!(undoes("no").is_err(), "it does not say what is meant");
    }
}
