//! Pauses one side, or both, of a topic or of a whole namespace.

use std::time::Duration;

use axum::response::Response;
use forebay_proto::{
    time::to_timestamp,
    v1::{PauseTopicRequest, Side},
};

use super::super::{act, asked::PageRequest, notice::told, trouble::Trouble};

/// Serves `POST /pause`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(pause(&asked).await)
}

async fn pause(asked: &PageRequest) -> Result<String, Trouble> {
    let (namespace, topic) = (asked.fields.get("ns"), asked.fields.get("name"));
    let (sides, done) = sides(asked.fields.get("side"))?;
    let until = match asked.fields.get("for") {
        "" => None,
        text => Some(to_timestamp(asked.now().plus(span(text)?))),
    };
    let request = PauseTopicRequest {
        namespace: namespace.to_owned(),
        topic: topic.to_owned(),
        sides: sides.into_iter().map(i32::from).collect(),
        until,
        note: asked.fields.get("note").to_owned(),
        dry_run: false,
    };
    asked.ask(request).await?;
    Ok(told(page_of(topic), &[("ns", namespace), ("name", topic)], done))
}

/// Where an act about a topic, or about a whole namespace, leads.
pub fn page_of(topic: &str) -> &'static str {
    if topic.is_empty() { "topics" } else { "topic" }
}

/// The sides that a form names, and what was done with them.
pub fn sides(text: &str) -> Result<(Vec<Side>, &'static str), Trouble> {
    match text {
        "dequeue" => Ok((vec![Side::Dequeue], "paused-dequeue")),
        "enqueue" => Ok((vec![Side::Enqueue], "paused-enqueue")),
        "both" => Ok((vec![Side::Enqueue, Side::Dequeue], "paused-both")),
        _ => Err(Trouble::field("side", "must be dequeue, enqueue or both")),
    }
}

/// A span of time, as `2h`.
pub fn span(text: &str) -> Result<Duration, Trouble> {
    humantime::parse_duration(text.trim())
        .map_err(|error| Trouble::field("for", &format!("is no span: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_names_its_sides_and_its_span() {
        assert_eq!(sides("both").unwrap().0.len(), 2);
        assert!(sides("all").is_err() && span("soon").is_err());
        assert_eq!(span(" 2h ").unwrap(), Duration::from_secs(7_200));
    }
}
