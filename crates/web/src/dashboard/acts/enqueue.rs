//! Enqueues one item, to try consumers with.

use std::time::Duration;

use axum::response::Response;
use forebay_proto::v1::{EnqueueItem, EnqueueRequest, enqueue_item::Schedule};
use tonic::{Code, Status};

use super::super::{act, asked::PageRequest, notice::told, trouble::Trouble};

/// Serves `POST /enqueue`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(enqueue(&asked).await)
}

async fn enqueue(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    let item = EnqueueItem {
        topic: topic.to_owned(),
        priority: priority(asked.fields.get("priority"))?,
        payload: payload(asked.fields.get("payload")).into(),
        schedule: delay(asked.fields.get("delay"))?.map(Schedule::Delay),
        ..EnqueueItem::default()
    };
    let request =
        EnqueueRequest { namespace: namespace.to_owned(), items: vec![item], ..EnqueueRequest::default() };
    let answer = asked.queue()?.enqueue(asked.request(request)).await?.into_inner();
    let error = answer.results.into_iter().next().and_then(|result| result.error);
    match error {
        Some(error) => Err(Status::new(Code::from_i32(error.code), error.message).into()),
        None => Ok(told("topic", &[("ns", namespace), ("name", topic)], "enqueued")),
    }
}

/// Browsers send line breaks as CR LF, whatever was typed.
fn payload(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn priority(text: &str) -> Result<i32, Trouble> {
    match text.trim() {
        "" => Ok(0),
        text => text.parse().map_err(|_| Trouble::field("priority", "must be a whole number")),
    }
}

/// A span, as `10s`.
fn delay(text: &str) -> Result<Option<prost_types::Duration>, Trouble> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let span: Duration = humantime::parse_duration(text)
        .map_err(|error| Trouble::field("delay", &format!("is no span: {error}")))?;
    let span = span.try_into().map_err(|_| Trouble::field("delay", "is too long"))?;
    Ok(Some(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_form_are_read() {
        assert_eq!(payload("{\r\n}"), "{\n}");
        assert_eq!((priority("").unwrap(), priority(" -5 ").unwrap()), (0, -5));
        assert!(priority("high").is_err() && priority("3000000000").is_err());
        assert_eq!(delay(" ").unwrap(), None);
        assert_eq!(delay("2m").unwrap(), Some(prost_types::Duration { seconds: 120, nanos: 0 }));
        assert!(delay("soon").is_err() && delay("-1s").is_err());
    }
}
