//! Quotes around texts in a filter, and those that are none.

/// The quotes that word processors and keyboards of several countries write.
const TYPOGRAPHIC: [char; 14] = [
    '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}', '\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{ab}',
    '\u{bb}', '\u{2039}', '\u{203a}', '\u{b4}', '\u{ff02}',
];

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

/// A quote that begins no text here. Taken as a part of a text it would pass nothing, and behind NOT
/// everything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quote(char);

impl Quote {
    /// The quote that a character is.
    pub(super) fn of(c: char) -> Option<Self> {
        (matches!(c, '\'' | '`') || TYPOGRAPHIC.contains(&c)).then_some(Self(c))
    }

    /// How people call it.
    pub(super) fn name(self) -> String {
        let kind = match self.0 {
            '\'' => "a single quote",
            '`' => "a back-quote",
            _ => "a typographic quote",
        };
        format!("{kind} ({})", self.0)
    }

    /// The message that tells how to write the quoted text instead.
    pub(super) fn instead(self, rest: &str) -> String {
        let inner = rest.trim_start_matches(|c| Self::of(c).is_some());
        let end = match inner.len() < rest.len() {
            true => inner.find(|c| Self::of(c).is_some()).unwrap_or(inner.len()),
            false => inner.find(char::is_whitespace).unwrap_or(inner.len()),
        };
        let text: String = inner[..end].chars().take(40).collect();
        // A star at the end goes on to mean what it means.
        let right = match text.strip_suffix('*') {
            Some(prefix) => quoted_prefix(prefix),
            None => quoted(&text),
        };
        format!("{} does not begin or end a text here: write it in double quotes, as {right}", self.name())
    }
}
