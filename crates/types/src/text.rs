//! Texts from elsewhere, made harmless where people see them.

use std::borrow::Cow;

/// The same with everything escaped that could change a terminal, or the order of what is shown.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// The same for what has several lines, which stay apart.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t'))
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Control characters, the separators of lines, what has no width, and marks of direction.
pub fn is_hidden(c: char) -> bool {
    const MARKS: [std::ops::RangeInclusive<char>; 3] =
        ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{2069}'];
    c.is_control() || matches!(c, '\u{feff}' | '\u{61c}') || MARKS.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_escaped() {
        assert_eq!(visible("gr\u{fc}n \u{5d0} \u{1f600}"), "gr\u{fc}n \u{5d0} \u{1f600}");
        assert_eq!(visible("a\n\x1b[2J\x7f"), "a\\n\\u{1b}[2J\\u{7f}");
        assert_eq!(visible_lines("a\r\n\tb\x1b"), "a\r\n\tb\\u{1b}");
        assert_eq!(visible("\u{202e}a\u{9b}\u{61c}\u{2066}"), "\\u{202e}a\\u{9b}\\u{61c}\\u{2066}");
    }
}
