//! Filters of lists: terms joined by AND, a subset of the filters of AIP-160. A wrong one is refused with the
//! position of what is wrong in it.

use std::{borrow::Cow, cmp::Ordering, time::Duration};

use crate::error::Refusal;

/// The longest filter, in bytes.
const BYTES_MAX: usize = 1_024;
/// The most terms of one.
const TERMS_MAX: usize = 20;
/// The operators. Those that begin like another one come first.
const OPERATORS: [(&str, Operator); 7] = [
    ("!=", Operator::NotEqual),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::More),
    (":", Operator::Has),
];

/// What the values of a field are.
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

/// A field that a filter may name.
pub type Field = (&'static str, Kind);

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

/// What a field is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// This text.
    Text(String),
    /// All text that begins so.
    Prefix(String),
    /// Each of these.
    OneOf(Vec<Value>),
    /// This number. A span has its microseconds.
    Number(i64),
}

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    /// It must not hold.
    negated: bool,
    /// The field's name.
    field: &'static str,
    /// How it is compared.
    operator: Operator,
    /// With what.
    value: Value,
}

/// A filter. All of its terms must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter(Vec<Term>);

/// What a row has in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held<'a> {
    /// This text.
    Text(Cow<'a, str>),
    /// This number. A span has its microseconds.
    Number(i64),
    /// Each of these words.
    Words(Vec<&'static str>),
    /// Nothing: no comparison holds.
    Nothing,
}

/// A text as the value of a term, which stands for that text alone.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A text as the value of a term, which stands for all texts that begin so.
pub fn quoted_prefix(text: &str) -> String {
    format!("\"{}*\"", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '*') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

impl Filter {
    /// Reads a filter that may name these fields.
    pub fn parse(text: &str, fields: &[Field]) -> Result<Self, Refusal> {
        if text.len() > BYTES_MAX {
            return Err(Refusal::too_large("filter", format!("has more than {BYTES_MAX} bytes")));
        }
        let mut parser = Parser { text, at: 0, fields };
        parser.terms().map(Self).map_err(|Wrong { at, what }| {
            let position = text[..at].chars().count() + 1;
            Refusal::field("filter", format!("at character {position}: {what}"))
        })
    }

    /// Whether all terms hold for a row, which `held` describes.
    pub fn holds<'a>(&self, held: impl Fn(&str) -> Held<'a>) -> bool {
        self.0.iter().all(|term| term.holds(&held(term.field)) != term.negated)
    }

    /// What all texts of a field begin with that pass. Empty: that is not known.
    pub fn prefix_of(&self, field: &str) -> &str {
        let terms = self.0.iter().filter(|term| term.field == field && !term.negated);
        let prefixes =
            terms.filter(|term| term.operator == Operator::Equal).filter_map(|term| match &term.value {
                Value::Text(text) | Value::Prefix(text) => Some(text.as_str()),
                Value::Number(_) | Value::OneOf(_) => None,
            });
        prefixes.max_by_key(|prefix| prefix.len()).unwrap_or_default()
    }
}

impl Term {
    fn holds(&self, held: &Held<'_>) -> bool {
        let is_equal = |text: &str| self.value.is_text(text);
        match (held, self.operator, &self.value) {
            (Held::Text(text), Operator::Equal, _) => is_equal(text),
            (Held::Text(text), Operator::NotEqual, _) => !is_equal(text),
            (Held::Text(text), Operator::Has, Value::Text(part)) => text.contains(part.as_str()),
            (Held::Words(words), Operator::Equal | Operator::Has, _) => {
                words.iter().any(|word| is_equal(word))
            }
            (Held::Words(words), Operator::NotEqual, _) => !words.iter().any(|word| is_equal(word)),
            (Held::Number(number), operator, Value::Number(value)) => {
                let order = number.cmp(value);
                match operator {
                    Operator::Equal | Operator::Has => order == Ordering::Equal,
                    Operator::NotEqual => order != Ordering::Equal,
                    Operator::Less => order == Ordering::Less,
                    Operator::AtMost => order != Ordering::Greater,
                    Operator::More => order == Ordering::Greater,
                    Operator::AtLeast => order != Ordering::Less,
                }
            }
            _ => false,
        }
    }
}

impl Value {
    fn is_text(&self, text: &str) -> bool {
        match self {
            Self::Text(value) => text == value,
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
            Self::OneOf(values) => values.iter().any(|value| value.is_text(text)),
            Self::Number(_) => false,
        }
    }
}

/// A value as it was written.
struct Literal {
    /// Its text, without quotes and what escapes.
    text: String,
    /// It was in quotes.
    is_quoted: bool,
    /// It ends in a `*` that was not escaped.
    is_open: bool,
}

impl Literal {
    /// The value of a term.
    fn value(self, kind: Kind, operator: Operator) -> Result<Value, String> {
        let Self { text, is_quoted, is_open } = self;
        match kind {
            Kind::Text => match text.strip_suffix('*') {
                Some(prefix) if is_open && operator != Operator::Has => Ok(Value::Prefix(prefix.to_owned())),
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

/// What is wrong with a filter, and where, in bytes.
struct Wrong {
    /// Where.
    at: usize,
    /// What.
    what: String,
}

/// Reads a filter from left to right.
struct Parser<'a> {
    /// The filter.
    text: &'a str,
    /// How far it has been read.
    at: usize,
    /// The fields that it may name.
    fields: &'a [Field],
}

impl<'a> Parser<'a> {
    fn terms(&mut self) -> Result<Vec<Term>, Wrong> {
        let mut terms = Vec::new();
        self.skip_blanks();
        while !self.rest().is_empty() {
            if !terms.is_empty() {
                let at = self.at;
                if self.word() != "AND" {
                    return Err(Wrong { at, what: "expected AND".to_owned() });
                }
                self.skip_blanks();
            }
            if terms.len() == TERMS_MAX {
                return Err(self.wrong(format!("a filter has at most {TERMS_MAX} terms")));
            }
            terms.push(self.term()?);
            self.skip_blanks();
        }
        Ok(terms)
    }

    fn term(&mut self) -> Result<Term, Wrong> {
        let mut negated = self.take("-");
        let mut at = self.at;
        let mut name = self.word();
        if name == "NOT" && !negated {
            negated = true;
            self.skip_blanks();
            at = self.at;
            name = self.word();
        }
        let Some((field, kind)) = self.fields.iter().copied().find(|(field, _)| *field == name) else {
            let known: Vec<&str> = self.fields.iter().map(|(field, _)| *field).collect();
            let what = format!("expected a field: one of {}", known.join(", "));
            return Err(Wrong { at, what });
        };
        self.skip_blanks();
        let operator = OPERATORS.into_iter().find(|(sign, _)| self.take(sign));
        let Some((sign, operator)) = operator else {
            return Err(self.wrong("expected an operator: = != < <= > >= or :"));
        };
        let is_text = matches!(kind, Kind::Text | Kind::Word(_));
        if is_text && !matches!(operator, Operator::Equal | Operator::NotEqual | Operator::Has) {
            return Err(self.wrong(format!("{field} is not compared with {sign}")));
        }
        self.skip_blanks();
        let is_list = is_text && operator == Operator::Equal && self.take("(");
        let value = if is_list { self.list(kind)? } else { self.value(kind, operator, &['"'])? };
        Ok(Term { negated, field, operator, value })
    }

    /// Values of which one is enough, behind their parenthesis.
    fn list(&mut self, kind: Kind) -> Result<Value, Wrong> {
        let mut values = Vec::new();
        loop {
            self.skip_blanks();
            values.push(self.value(kind, Operator::Equal, &['"', ')'])?);
            self.skip_blanks();
            if self.take(")") {
                return Ok(Value::OneOf(values));
            }
            let at = self.at;
            if self.word() != "OR" {
                return Err(Wrong { at, what: "expected OR, or the end of the list".to_owned() });
            }
        }
    }

    /// A value. Without quotes it ends at a blank, and at each of these.
    fn value(&mut self, kind: Kind, operator: Operator, ends: &[char]) -> Result<Value, Wrong> {
        let at = self.at;
        let literal = self.literal(ends)?;
        literal.value(kind, operator).map_err(|what| Wrong { at, what })
    }

    fn literal(&mut self, ends: &[char]) -> Result<Literal, Wrong> {
        if !self.take("\"") {
            let is_end = |c: char| c.is_whitespace() || ends.contains(&c);
            let end = self.rest().find(is_end).unwrap_or(self.rest().len());
            let text = self.rest()[..end].to_owned();
            if text.is_empty() {
                return Err(self.wrong("expected a value"));
            }
            self.at += end;
            return Ok(Literal { is_open: text.ends_with('*'), text, is_quoted: false });
        }
        let begin = self.at - 1;
        let (mut text, mut is_open) = (String::new(), false);
        let mut characters = self.rest().char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += at + 1;
                    return Ok(Literal { text, is_quoted: true, is_open });
                }
                '\\' => {
                    text.extend(characters.next().map(|(_, escaped)| escaped));
                    is_open = false;
                }
                other => {
                    text.push(other);
                    is_open = other == '*';
                }
            }
        }
        Err(Wrong { at: begin, what: "the quote has no end".to_owned() })
    }

    fn wrong(&self, what: impl Into<String>) -> Wrong {
        Wrong { at: self.at, what: what.into() }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}

#[cfg(test)]
mod tests;
