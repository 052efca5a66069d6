//! Texts from elsewhere, made harmless for a terminal.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::flags::PayloadForm;

/// The same with everything escaped that could change a terminal, or the order of what it shows.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Control characters, the separators of lines, and marks of direction.
fn is_hidden(c: char) -> bool {
    const MARKS: [std::ops::RangeInclusive<char>; 3] =
        ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{2069}'];
    c.is_control() || c == '\u{feff}' || MARKS.iter().any(|range| range.contains(&c))
}

/// Bytes in a table.
pub fn payload(bytes: &[u8], form: PayloadForm) -> String {
    match (form, std::str::from_utf8(bytes)) {
        (PayloadForm::None, _) => String::new(),
        (PayloadForm::Text, Ok(text)) => visible(text),
        (PayloadForm::Text, Err(_)) => format!("base64:{}", STANDARD.encode(bytes)),
        (PayloadForm::Base64, _) => STANDARD.encode(bytes),
        (PayloadForm::Hex, _) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_each_form() {
        let text = |bytes| payload(bytes, PayloadForm::Text);
        assert_eq!(text(b"hello"), "hello");
        assert_eq!(text("\u{e4}\n\x1b[2J".as_bytes()), "\u{e4}\\n\\u{1b}[2J");
        assert_eq!(text("\u{202e}a\u{9b}".as_bytes()), "\\u{202e}a\\u{9b}");
        assert_eq!(text(&[0xff, 0]), "base64:/wA=");
        assert_eq!(payload(&[0xff, 0], PayloadForm::Hex), "ff00");
        assert_eq!(payload(b"a", PayloadForm::Base64), "YQ==");
        assert_eq!(payload(b"a", PayloadForm::None), "");
    }
}
