//! Values as they are written.

use std::time::Duration;

/// The type of a field's values.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Text. A value that ends in `*` stands for all that begin so.
    Text,
    /// A whole number.
    Number,
    /// A span, as in `90s` or `1h`.
    Span,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `:`, that is contains.
    Has,
}

/// The value that a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// This text.
    Text(String),
    /// All text that begins so.
    Prefix(String),
    /// Each of these.
    OneOf(Vec<Value>),
    /// This number. A span has its microseconds.
    Number(i64),
}

impl Value {
    /// Whether it stands for a text.
    pub(super) fn is_text(&self, text: &str) -> bool {
        match self {
            Self::Text(value) => text == value,
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Self::OneOf(values) => values.iter().any(|value| value.is_text(text)),
            Self::Number(_) => false,
        }
    }
}

/// A value as it was written.
pub(super) struct Literal {
    /// Its text, without quotes and what escapes.
    pub(super) text: String,
    /// It was in quotes.
    pub(super) is_quoted: bool,
    /// It ends in a `*` that was not escaped.
    pub(super) is_open: bool,
    /// Stars before its end that were not escaped.
    pub(super) stars: usize,
}

impl Literal {
    /// The value of a term.
    pub(super) fn value(self, kind: Kind, operator: Operator) -> Result<Value, String> {
        let Self { text, is_quoted, is_open, stars } = self;
        let is_part = operator == Operator::Has;
        match kind {
            Kind::Text if stars > 0 || (is_open && is_part) => Err(match is_part {
                true => "a part of a text has no * (for the character itself write \\* in double quotes)"
                    .to_owned(),
                false => {
                    "a * stands at the end of a text alone; a part of it is found by : (for the character \
                          itself write \\* in double quotes)"
                        .to_owned()
                }
            }),
            Kind::Text => match text.strip_suffix('*') {
                Some(prefix) if is_open => Ok(Value::Prefix(prefix.to_owned())),
                _ => Ok(Value::Text(text)),
            },
            Kind::Number if is_quoted => Err("expected a whole number, without quotes".to_owned()),
            Kind::Number => text.parse().map(Value::Number).map_err(|_| "expected a whole number".to_owned()),
            Kind::Span => {
                let span: Option<Duration> = humantime::parse_duration(&text).ok();
                let micros = span.and_then(|span| i64::try_from(span.as_micros()).ok());
                micros.map(Value::Number).ok_or_else(|| "expected a span, as 90s or 1h".to_owned())
            }
            Kind::Word(words) if words.contains(&text.as_str()) => Ok(Value::Text(text)),
            Kind::Word(words) => Err(format!("expected one of {}", words.join(", "))),
        }
    }
}
