//! Filters of lists: terms joined by AND, a subset of the filters of AIP-160. A wrong one is refused with the
//! position of what is wrong in it.

use std::{borrow::Cow, cmp::Ordering};

use crate::{error::Refusal, nearest::nearest};
use literal::{Literal, Value};
use quote::Quote;

pub use literal::{Kind, Operator};
pub use quote::{quoted, quoted_prefix};

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

/// A field that a filter may name.
pub type Field = (&'static str, Kind);

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

/// The value that a row has in a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// This text.
    Text(Cow<'a, str>),
    /// This number. A span has its microseconds.
    Number(i64),
    /// Each of these words.
    Words(Vec<&'static str>),
    /// Nothing: no comparison holds.
    Nothing,
}

/// Whether a text is meant as a filter of these fields: it begins with one of them and an operator. It may be
/// wrong.
pub fn is_meant(text: &str, fields: &[Field]) -> bool {
    let mut parser = Parser { text, at: 0, fields };
    parser.skip_blanks();
    parser.take("-");
    let mut name = parser.word();
    if name == "NOT" {
        parser.skip_blanks();
        name = parser.word();
    }
    parser.skip_blanks();
    let is_field = fields.iter().any(|(field, _)| *field == name);
    is_field && OPERATORS.into_iter().any(|(sign, _)| parser.take(sign))
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
    pub fn holds<'a>(&self, held: impl Fn(&str) -> FieldValue<'a>) -> bool {
        self.0.iter().all(|term| term.holds(&held(term.field)) != term.negated)
    }

    /// The longest known prefix that a text of the field must have to pass. Empty: none is known.
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
    fn holds(&self, held: &FieldValue<'_>) -> bool {
        let is_equal = |text: &str| self.value.is_text(text);
        match (held, self.operator, &self.value) {
            (FieldValue::Text(text), Operator::Equal, _) => is_equal(text),
            (FieldValue::Text(text), Operator::NotEqual, _) => !is_equal(text),
            (FieldValue::Text(text), Operator::Has, Value::Text(part)) => text.contains(part.as_str()),
            (FieldValue::Words(words), Operator::Equal | Operator::Has, _) => {
                words.iter().any(|word| is_equal(word))
            }
            (FieldValue::Words(words), Operator::NotEqual, _) => !words.iter().any(|word| is_equal(word)),
            (FieldValue::Number(number), operator, Value::Number(value)) => {
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

/// An error in a filter, and where it is, in bytes.
struct Wrong {
    /// Its position.
    at: usize,
    /// Its message.
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
            return Err(Wrong { at, what: self.no_field(at, name) });
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

    /// The message for a place where a field should be.
    fn no_field(&self, at: usize, name: &str) -> String {
        if let Some(quote) = self.text[at..].chars().next().and_then(Quote::of) {
            return format!("expected a field, which has no quotes around it, and found {}", quote.name());
        }
        let known: Vec<&str> = self.fields.iter().map(|(field, _)| *field).collect();
        match nearest(name, known.iter().copied().chain(["NOT"])) {
            Some(near) => format!("expected a field; did you mean {near}?"),
            None => format!("expected a field: one of {}", known.join(", ")),
        }
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
            if let Some(quote) = text.chars().find_map(Quote::of) {
                return Err(self.wrong(quote.instead(self.rest())));
            }
            if text.starts_with(['=', '<', '>', '!', '~']) {
                return Err(self
                    .wrong(format!("a text that begins like an operator is written as {}", quoted(&text))));
            }
            self.at += end;
            let stars = text.trim_end_matches('*').matches('*').count() + usize::from(text.ends_with("**"));
            return Ok(Literal { is_open: text.ends_with('*'), text, is_quoted: false, stars });
        }
        let begin = self.at - 1;
        let (mut text, mut is_open, mut stars) = (String::new(), false, 0);
        let mut characters = self.rest().char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.at += at + 1;
                    return Ok(Literal { text, is_quoted: true, is_open, stars });
                }
                '\\' => {
                    stars += usize::from(is_open);
                    text.extend(characters.next().map(|(_, escaped)| escaped));
                    is_open = false;
                }
                other => {
                    stars += usize::from(is_open);
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

mod literal;
mod quote;
#[cfg(test)]
mod tests;
