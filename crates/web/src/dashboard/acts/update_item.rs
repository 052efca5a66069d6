//! Changes the priority of an item that waits, or when it is delivered.

use axum::response::Response;
use forebay_proto::v1::{UpdateItemRequest, update_item_request::Schedule};

use super::{
    super::{act, asked::PageRequest, notice::told, trouble::Trouble},
    operate::number,
};
use crate::fields::Fields;

/// Serves `POST /update-item`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(update(&asked).await)
}

async fn update(asked: &PageRequest) -> Result<String, Trouble> {
    let request = request(&asked.fields)?;
    let (namespace, id) = (asked.fields.get("ns"), asked.fields.get("id"));
    asked.ask(request).await?;
    Ok(told("item", &[("ns", namespace), ("id", id)], "updated"))
}

/// The request that the form asks for. Values that are not given stay as they are.
fn request(fields: &Fields) -> Result<UpdateItemRequest, Trouble> {
    let priority = number(fields, "priority")?;
    let schedule = match fields.get("delay").trim() {
        "" => None,
        text => Some(Schedule::Delay(delay(text)?)),
    };
    if priority.is_none() && schedule.is_none() {
        return Err(Trouble::field("priority", "or the delay must be given"));
    }
    Ok(UpdateItemRequest {
        namespace: fields.get("ns").to_owned(),
        item_id: fields.get("id").to_owned(),
        priority,
        schedule,
        reason: fields.get("reason").to_owned(),
        ..UpdateItemRequest::default()
    })
}

fn delay(text: &str) -> Result<prost_types::Duration, Trouble> {
    let wrong = |what: String| Trouble::field("delay", &what);
    let span = humantime::parse_duration(text).map_err(|error| wrong(format!("is no span: {error}")))?;
    prost_types::Duration::try_from(span).map_err(|_| wrong("is too long".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_changes_what_it_gives() {
        let read = |form: &str| request(&Fields::read(form.as_bytes()));
        let both = read("ns=a&id=3-1&priority=-5&delay=+2h+").unwrap();
        let delay = prost_types::Duration { seconds: 7_200, nanos: 0 };
        assert_eq!((both.priority, both.schedule), (Some(-5), Some(Schedule::Delay(delay))));
        assert_eq!(read("delay=0s").unwrap().priority, None);
        for wrong in ["", "priority=high", "priority=2147483648", "delay=soon"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
