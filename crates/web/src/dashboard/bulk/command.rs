//! An operation as a command.

use forebay_proto::{
    time::{from_duration, from_timestamp},
    v1::{Operation, OperationKind, OperationUpdate, operation_update::Schedule},
};

/// The rate of an operation that names none.
const RATE_DEFAULT: u32 = 5_000;

/// The command that begins the same. `expected`: it does nothing if more match. `None`: not all of it is
/// known.
pub fn command(operation: &Operation, expected: Option<u64>) -> Option<String> {
    let topic = word(&operation.topic);
    let topic = if topic.starts_with('-') { format!("-- {topic}") } else { topic };
    let mut flags = vec![("--namespace", word(&operation.namespace))];
    let mut text = |name, value: &str| {
        if !value.is_empty() {
            flags.push((name, word(value)));
        }
    };
    text("--filter", &operation.filter);
    text("--to-topic", &operation.to_topic);
    text("--ttl", &operation.ttl.map(span).unwrap_or_default());
    text("--max-redrives", &operation.max_redrives.map(|most| most.to_string()).unwrap_or_default());
    if ![0, RATE_DEFAULT].contains(&operation.rate_per_second) {
        text("--rate", &operation.rate_per_second.to_string());
    }
    text("--expect-at-most", &expected.map(|most| most.to_string()).unwrap_or_default());
    text("--reason", &operation.reason);
    let verb = match operation.kind() {
        OperationKind::Purge if operation.leased => "topic purge --leased",
        OperationKind::Purge => "topic purge",
        OperationKind::Redrive => "dead-letter redrive",
        OperationKind::DeleteDead => "dead-letter delete",
        OperationKind::ResetLeases => "topic reset-leases",
        OperationKind::Cancel => "item cancel",
        OperationKind::Update => {
            flags.extend(values(operation.update.as_ref()?)?);
            "item update"
        }
        OperationKind::Unspecified => return None,
    };
    let flags: String = flags.iter().map(|(name, value)| given(name, value)).collect();
    Some(match operation.kind() {
        OperationKind::Cancel | OperationKind::Update => {
            format!("forebay {verb}{}{flags}", given("--topic", &word(&operation.topic)))
        }
        _ => format!("forebay {verb}{flags} {topic}"),
    })
}

/// A flag with its value. One that begins like a flag is bound to it.
fn given(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" {name}{between}{value}")
}

/// The values that items are to have, as flags. `None`: they are not known, since an operation does not show
/// metadata.
fn values(update: &OperationUpdate) -> Option<Vec<(&'static str, String)>> {
    if update.metadata_bytes.is_some() {
        return None;
    }
    let schedule = update.schedule.as_ref().map(|schedule| match schedule {
        Schedule::Delay(delay) => ("--delay", word(&span(*delay))),
        Schedule::DeliverAfter(at) => ("--deliver-after", time(*at)),
    });
    let priority = update.priority.map(|priority| ("--priority", priority.to_string()));
    let ttl = update.ttl.map(|ttl| ("--ttl", word(&span(ttl))));
    Some([priority, schedule, ttl].into_iter().flatten().collect())
}

fn span(span: prost_types::Duration) -> String {
    humantime::format_duration(from_duration(span)).to_string()
}

fn time(at: prost_types::Timestamp) -> String {
    super::super::texts::utc(from_timestamp(at)).replace(' ', "T") + "Z"
}

/// A text as one word of a shell.
pub fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&byte);
    match !text.is_empty() && text.bytes().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: OperationKind) -> Operation {
        Operation {
            kind: kind.into(),
            namespace: "default".to_owned(),
            topic: "mail".to_owned(),
            ..Operation::default()
        }
    }

    #[test]
    fn an_operation_is_a_command() {
        let filtered = Operation {
            filter: "reason = \"can't*\"".to_owned(),
            rate_per_second: 100,
            ..operation(OperationKind::Redrive)
        };
        assert_eq!(
            command(&filtered, None).unwrap(),
            "forebay dead-letter redrive --namespace default --filter 'reason = \"can'\\''t*\"' --rate 100 \
             mail"
        );
        let leased = Operation { leased: true, rate_per_second: 5_000, ..operation(OperationKind::Purge) };
        assert_eq!(command(&leased, None).unwrap(), "forebay topic purge --leased --namespace default mail");
        let dashed = Operation { topic: "-rf".to_owned(), ..operation(OperationKind::DeleteDead) };
        assert_eq!(
            command(&dashed, Some(7)).unwrap(),
            "forebay dead-letter delete --namespace default --expect-at-most 7 -- -rf"
        );
        let dashed = Operation { topic: "-rf".to_owned(), ..operation(OperationKind::Cancel) };
        assert_eq!(command(&dashed, None).unwrap(), "forebay item cancel --topic=-rf --namespace default");
        assert_eq!(command(&operation(OperationKind::Unspecified), None), None);
    }

    #[test]
    fn an_update_is_a_command_unless_it_has_metadata() {
        let delay = prost_types::Duration { seconds: 5_400, nanos: 0 };
        let update = OperationUpdate {
            priority: Some(-5),
            schedule: Some(Schedule::Delay(delay)),
            ..OperationUpdate::default()
        };
        let whole = Operation { update: Some(update.clone()), ..operation(OperationKind::Update) };
        assert_eq!(
            command(&whole, None).unwrap(),
            "forebay item update --topic mail --namespace default --priority=-5 --delay '1h 30m'"
        );
        let metadata = OperationUpdate { metadata_bytes: Some(3), ..update };
        assert_eq!(command(&Operation { update: Some(metadata), ..whole }, None), None);
    }

    #[test]
    fn a_text_is_one_word_of_a_shell() {
        assert_eq!(
            ["a-b/c.d", "", "a b", "$x", "it's"].map(word),
            ["a-b/c.d", "''", "'a b'", "'$x'", "'it'\\''s'"]
        );
    }
}
