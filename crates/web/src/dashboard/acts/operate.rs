//! Begins a change of many items.

use std::str::FromStr;

use axum::response::Response;
use forebay_proto::v1::StartOperationRequest;

use super::super::{act, asked::PageRequest, bulk, notice::told, trouble::Trouble};
use crate::fields::Fields;

/// Serves `POST /operate`.
pub async fn act(asked: PageRequest) -> Response {
    act::lead(operate(&asked).await)
}

async fn operate(asked: &PageRequest) -> Result<String, Trouble> {
    let request = request(&asked.fields)?;
    let namespace = request.namespace.clone();
    let answer = asked.ask(request).await?;
    let id = answer.operation.unwrap_or_default().id;
    Ok(told("operation", &[("ns", &namespace), ("id", &id)], "begun"))
}

/// The request of the operation that the form asks for.
fn request(fields: &Fields) -> Result<StartOperationRequest, Trouble> {
    let text = |name: &str| fields.get(name).to_owned();
    let kind = bulk::kind_of(fields.get("kind"))
        .ok_or_else(|| Trouble::field("kind", "names nothing that can be done"))?;
    let expected = number(fields, "expect")?;
    let topic = text("name");
    if bulk::must_type(fields.get("filter"), expected) && fields.get("typed").trim() != topic.trim() {
        return Err(Trouble::field("typed", "must be the topic's name, since this is about many items"));
    }
    Ok(StartOperationRequest {
        namespace: text("ns"),
        kind: kind.into(),
        topic,
        filter: text("filter"),
        leased: !fields.get("leased").is_empty(),
        to_topic: fields.get("to").trim().to_owned(),
        expect_at_most: expected,
        rate_per_second: number(fields, "rate")?.unwrap_or_default(),
        reason: text("reason"),
        request_id: text("request_id"),
        max_redrives: number(fields, "max_redrives")?,
        ..StartOperationRequest::default()
    })
}

/// A number of a form. `None`: it is not given.
pub fn number<T: FromStr>(fields: &Fields, name: &str) -> Result<Option<T>, Trouble> {
    match fields.get(name).trim() {
        "" => Ok(None),
        text => {
            text.parse().map(Some).map_err(|_| Trouble::field(name, "must be a whole number in its bounds"))
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::OperationKind;

    use super::*;

    fn read(form: &str) -> Result<StartOperationRequest, Trouble> {
        request(&Fields::read(form.as_bytes()))
    }

    #[test]
    fn a_form_is_an_operation() {
        let form = "ns=a&kind=redrive&name=mail&filter=age+%3E+1h&expect=12&rate=100&to=slow&max_redrives=3\
                    &reason=mended&request_id=7";
        let expected = StartOperationRequest {
            namespace: "a".to_owned(),
            kind: OperationKind::Redrive.into(),
            topic: "mail".to_owned(),
            filter: "age > 1h".to_owned(),
            to_topic: "slow".to_owned(),
            expect_at_most: Some(12),
            rate_per_second: 100,
            max_redrives: Some(3),
            reason: "mended".to_owned(),
            request_id: "7".to_owned(),
            ..StartOperationRequest::default()
        };
        assert_eq!(read(form).unwrap(), expected);
        assert!(read("kind=update&name=mail&filter=age+%3E+1h&expect=1").is_err(), "no form has it");
        for wrong in ["expect=x", "expect=-1", "expect=1&rate=4294967296", "expect=1&max_redrives=many"] {
            assert!(read(&format!("kind=redrive&name=mail&filter=age+%3E+1h&{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_name_is_typed_where_much_is_at_stake() {
        let whole = "kind=purge&name=mail&expect=3";
        assert!(read(whole).unwrap_err().message.contains("typed"));
        assert!(read(&format!("{whole}&typed=mial")).is_err());
        assert!(read(&format!("{whole}&typed=+mail+")).is_ok());
        let many = "kind=purge&name=mail&filter=age+%3E+1h&expect=1001";
        assert!(read(many).is_err() && read(&format!("{many}&typed=mail")).is_ok());
        assert!(read("kind=purge&name=mail&filter=age+%3E+1h&expect=1000").is_ok());
        assert!(read("kind=purge&name=mail&filter=age+%3E+1h").is_err(), "nobody knows how many");
    }
}
