//! Filters: a wrong one names the field and a place in it, a right one is the same when it is said twice, and
//! a quoted text stands for itself.

use forebay_types::filter::{Field, FieldValue, Filter, Kind, quoted};

const FIELDS: &[Field] = &[
    ("topic", Kind::Text),
    ("state", Kind::Word(&["ready", "leased", "dead"])),
    ("priority", Kind::Number),
    ("age", Kind::Span),
];

/// Rows that a filter meets.
const ROWS: [fn(&str) -> FieldValue<'static>; 3] = [
    |field| match field {
        "topic" => FieldValue::Text("mail/eu".into()),
        "state" => FieldValue::Words(vec!["ready", "dead"]),
        "priority" => FieldValue::Number(i64::MIN),
        _ => FieldValue::Number(90_000_000),
    },
    |field| match field {
        "topic" => FieldValue::Text("größe".into()),
        "state" => FieldValue::Words(Vec::new()),
        "priority" => FieldValue::Number(i64::MAX),
        _ => FieldValue::Nothing,
    },
    |_| FieldValue::Nothing,
];

/// Takes the bytes as a filter.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(own) = Filter::parse(&format!("topic = {}", quoted(&text)), FIELDS) {
        assert!(own.holds(|_| FieldValue::Text((&*text).into())), "{text:?}");
        let longer = format!("{text}x");
        assert!(!own.holds(|_| FieldValue::Text((&longer).into())), "{text:?}");
    }
    let filter = match Filter::parse(&text, FIELDS) {
        Ok(filter) => filter,
        Err(refusal) => {
            assert_eq!(refusal.field.as_deref(), Some("filter"));
            if let Some(rest) = refusal.message.strip_prefix("at character ") {
                let number = rest.split(':').next().and_then(|number| number.parse::<usize>().ok());
                let position = number.expect("a number");
                assert!((1..=text.chars().count() + 1).contains(&position), "{refusal}");
            }
            return;
        }
    };
    assert!(text.len() <= 1_024);
    let twice = format!("{text} AND {text}");
    match Filter::parse(&twice, FIELDS) {
        Ok(again) => {
            ROWS.iter().for_each(|row| assert_eq!(filter.holds(row), again.holds(row), "{text}"));
            assert_eq!(filter.prefix_of("topic"), again.prefix_of("topic"));
        }
        Err(refusal) => {
            let is_limit = twice.len() > 1_024 || refusal.message.contains("at most 20 terms");
            assert!(is_limit || text.trim().is_empty(), "{twice}: {refusal}");
        }
    }
}
