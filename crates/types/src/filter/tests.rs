//! Filters are read, held against rows, and composed.

use super::*;

const FIELDS: &[Field] = &[
    ("topic", Kind::Text),
    ("state", Kind::Word(&["ready", "dead"])),
    ("ready", Kind::Number),
    ("age", Kind::Span),
];

fn held(field: &str) -> FieldValue<'static> {
    match field {
        "topic" => FieldValue::Text("mail/eu".into()),
        "state" => FieldValue::Words(vec!["ready"]),
        "ready" => FieldValue::Number(7),
        "age" => FieldValue::Number(90_000_000),
        _ => FieldValue::Nothing,
    }
}

#[test]
fn terms_hold_or_not() {
    for (text, holds) in [
        ("", true),
        ("  topic = \"mail*\" AND ready>=7 ", true),
        ("topic=mail/eu AND NOT ready < 7", true),
        ("topic = mail", false),
        ("topic != mail", true),
        ("topic : il/e", true),
        ("-topic:il/e", false),
        ("state = ready AND state != dead", true),
        ("state = dead", false),
        ("age > 1m AND age < 2m", true),
        ("age >= 90s AND age <= 90s AND age = 90s", true),
        ("ready != 7", false),
        ("topic = (a OR mail/eu)", true),
        ("topic=( \"mail*\"OR b ) AND ready = 7", true),
        ("topic = (a OR b)", false),
        ("NOT topic = (a OR b)", true),
        ("state = (ready OR dead)", true),
        ("topic = \"(a\"", false),
    ] {
        let filter = Filter::parse(text, FIELDS).unwrap();
        assert_eq!(filter.holds(held), holds, "{text}");
    }
    assert!(!Filter::parse("ready < 9", FIELDS).unwrap().holds(|_| FieldValue::Nothing));
}

#[test]
fn a_wrong_filter_names_the_position() {
    let long = "ready = 1 AND ".repeat(TERMS_MAX) + "ready = 1";
    for (text, why) in [
        ("topik = a", "at character 1: expected a field; did you mean topic?"),
        ("subject = a", "at character 1: expected a field: one of topic, state, ready, age"),
        ("not topic = a", "at character 1: expected a field; did you mean NOT?"),
        ("topic = ä AND topik = a", "at character 15: expected a field"),
        ("ready", "at character 6: expected an operator"),
        ("ready = ", "at character 9: expected a value"),
        ("ready = many", "at character 9: expected a whole number"),
        ("ready = \"7\"", "at character 9: expected a whole number, without quotes"),
        ("topic < a", "at character 8: topic is not compared with <"),
        ("topic = \"a", "at character 9: the quote has no end"),
        ("state = gone", "at character 9: expected one of ready, dead"),
        ("age > 5", "at character 7: expected a span"),
        ("ready = 1 OR ready = 2", "at character 11: expected AND"),
        ("ready = 1 ready = 2", "at character 11: expected AND"),
        ("topic = (a b)", "at character 12: expected OR, or the end of the list"),
        ("topic = (a OR", "at character 14: expected a value"),
        ("topic = ()", "at character 10: expected a value"),
        ("topic = (a)x", "at character 12: expected AND"),
        ("state = (ready OR gone)", "at character 19: expected one of ready, dead"),
        ("ready = (1 OR 2)", "at character 9: expected a whole number"),
        (&long, "a filter has at most 20 terms"),
    ] {
        let refusal = Filter::parse(text, FIELDS).unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some("filter"));
        assert!(refusal.message.contains(why), "{text}: {}", refusal.message);
    }
    assert!(Filter::parse(&"a".repeat(BYTES_MAX + 1), FIELDS).is_err());
}

#[test]
fn quotes_and_stars_that_mean_nothing_are_refused_by_name() {
    for (text, why) in [
        (
            "topic = 'mail*'",
            "at character 9: a single quote (') does not begin or end a text here: write it in double \
             quotes, as \"mail*\"",
        ),
        ("NOT topic = 'mail eu'", "as \"mail eu\""),
        ("topic : 'il'", "as \"il\""),
        ("topic = mail'", "a single quote"),
        ("topic : can't", "as \"can't\""),
        ("topic = `mail`", "a back-quote (`)"),
        ("topic = \u{201c}mail*\u{201d}", "a typographic quote (\u{201c})"),
        ("topic = \u{201e}mail\u{201c}", "as \"mail\""),
        ("topic = \u{ab}mail\u{bb}", "as \"mail\""),
        ("topic = (a OR 'b')", "at character 15: a single quote"),
        (
            "'topic = a'",
            "at character 1: expected a field, which has no quotes around it, and found a single quote",
        ),
        ("state = 'ready'", "a single quote"),
        ("topic ==mail", "begins like an operator"),
        ("NOT topic = =mail", "as \"=mail\""),
        ("topic = \"*mail*\"", "a * stands at the end of a text alone"),
        ("NOT topic = *mail", "a * stands at the end of a text alone"),
        ("topic = ma*il*", "a * stands at the end"),
        ("topic = \"a**\"", "a * stands at the end"),
        ("topic = a**", "a * stands at the end"),
        ("topic : \"mail*\"", "a part of a text has no *"),
        ("topic : mail*", "a part of a text has no *"),
    ] {
        let refusal = Filter::parse(text, FIELDS).unwrap_err();
        assert!(refusal.message.contains(why), "{text}: {}", refusal.message);
    }
    for text in ["topic = \"it's\"", "topic : \"\u{201c}a\u{201d} \\*\"", "topic = \"\\*a\\*\"", "topic = a*"]
    {
        assert!(Filter::parse(text, FIELDS).is_ok(), "{text}");
    }
}

#[test]
fn what_begins_with_a_field_and_an_operator_is_meant_as_a_filter() {
    for text in ["topic = 'x'", " NOT topic:x", "-age > 5", "topic==", "ready >= many AND"] {
        assert!(is_meant(text, FIELDS), "{text}");
    }
    for text in ["", "topic", "topic x", "timeout: 3 s", "NOT = 3", "a topic = b", "'topic = x'"] {
        assert!(!is_meant(text, FIELDS), "{text}");
    }
}

#[test]
fn the_prefix_of_a_field_is_known_where_a_term_asks_for_it() {
    let prefix = |text| Filter::parse(text, FIELDS).unwrap().prefix_of("topic").to_owned();
    assert_eq!(prefix("topic = \"mail*\" AND ready > 1"), "mail");
    assert_eq!(prefix("topic = mail AND topic = \"m*\""), "mail");
    assert_eq!(prefix("topic != mail AND -topic = b AND topic:c"), "");
    assert_eq!(prefix("topic = (mail OR mails)"), "", "it is one of several");
    assert_eq!(prefix("topic = \"quo\\\"te*\""), "quo\"te");
}

#[test]
fn a_quoted_text_stands_for_itself_alone() {
    // All short texts of what could end a quote, escape something, or stand for more than itself.
    let mut texts = vec![String::new()];
    for from in 0..5 {
        let longer: Vec<String> = texts
            .iter()
            .filter(|text| text.chars().count() == from)
            .flat_map(|text| ['"', '\\', '*', ' ', 'ä'].map(|next| format!("{text}{next}")))
            .collect();
        texts.extend(longer);
    }
    for text in &texts {
        let (quoted, longer) = (quoted(text), format!("{text}x"));
        let of =
            |sign| Filter::parse(&format!("topic {sign} {quoted} AND topic = {quoted}"), FIELDS).unwrap();
        let (equal, differs) = (of("="), of("!="));
        assert!(
            equal.holds(|_| FieldValue::Text(text.into()))
                && of(":").holds(|_| FieldValue::Text(text.into())),
            "{quoted}"
        );
        assert!(!differs.holds(|_| FieldValue::Text(text.into())), "{quoted}");
        assert!(!equal.holds(|_| FieldValue::Text((&longer).into())), "{quoted} is no prefix");
        assert_eq!(equal.prefix_of("topic"), text);

        let begins = Filter::parse(&format!("topic = {}", quoted_prefix(text)), FIELDS).unwrap();
        assert!(
            begins.holds(|_| FieldValue::Text(text.into()))
                && begins.holds(|_| FieldValue::Text((&longer).into()))
        );
        assert_eq!(begins.prefix_of("topic"), text);
        let before = text.char_indices().next_back().map(|(end, _)| &text[..end]);
        assert!(before.is_none_or(|before| !begins.holds(|_| FieldValue::Text(before.into()))), "{quoted}");
    }
}
