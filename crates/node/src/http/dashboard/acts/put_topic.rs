//! Changes the settings of a topic. The form has all of them, and the version that they replace: if somebody
//! else has changed them meanwhile, nothing is done.

use axum::response::Response;
use forebay_proto::v1::{PutTopicRequest, TopicSettings};

use super::{
    super::{act, asked::Asked, notice::told, trouble::Trouble},
    create_token::span,
    operate::number,
};
use crate::http::fields::Fields;

/// Serves `POST /put-topic`.
pub async fn act(asked: Asked) -> Response {
    act::lead(put(&asked).await)
}

async fn put(asked: &Asked) -> Result<String, Trouble> {
    let request = request(&asked.fields)?;
    let (namespace, topic) = (request.namespace.clone(), request.topic.clone());
    asked.admin()?.put_topic(asked.request(request)).await?;
    Ok(told("topic", &[("ns", &namespace), ("name", &topic), ("tab", "settings")], "settings"))
}

/// What the form asks for. What is empty is inherited.
fn request(fields: &Fields) -> Result<PutTopicRequest, Trouble> {
    let span = |name| span(name, fields.get(name));
    let attempts = number(fields, "attempts")?;
    if attempts == Some(0) {
        return Err(Trouble::field("attempts", "must be 1 or more, or be empty"));
    }
    let settings = TopicSettings {
        default_lease: span("lease")?,
        default_max_attempts: attempts.unwrap_or_default(),
        retry_delay: span("retry")?,
        dead_letter_retention: span("kept")?,
    };
    Ok(PutTopicRequest {
        namespace: fields.get("ns").to_owned(),
        topic: fields.get("name").to_owned(),
        settings: Some(settings),
        version: number(fields, "version")?.ok_or_else(|| Trouble::field("version", "must be given"))?,
        reason: fields.get("reason").to_owned(),
        dry_run: false,
        request_id: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_all_settings_and_what_is_empty_is_inherited() {
        let read = |form: &str| request(&Fields::read(form.as_bytes()));
        let put = read("ns=a&name=b&version=7&lease=+30s+&attempts=5&retry=0s&kept=&reason=c").unwrap();
        assert_eq!((&*put.namespace, &*put.topic, put.version, &*put.reason), ("a", "b", 7, "c"));
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let expected = TopicSettings {
            default_lease: seconds(30),
            default_max_attempts: 5,
            retry_delay: seconds(0),
            dead_letter_retention: None,
        };
        assert_eq!(put.settings, Some(expected));
        for wrong in ["", "version=1&attempts=0", "version=1&lease=soon", "version=x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
