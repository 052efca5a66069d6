//! Texts from elsewhere, made harmless for a terminal.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use forebay_types::is_hidden;
pub use forebay_types::visible;
use serde_json::Value;

use super::flags::PayloadForm;

/// JSON as it is printed, in one line, or with `#` in several. What a terminal would take for more than text
/// is escaped in it too: to a parser that is the same.
pub struct Json<'a>(pub &'a Value);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if f.alternate() { format!("{:#}", self.0) } else { self.0.to_string() };
        // Characters below the blank are escaped already, but for ends of lines between values.
        text.chars().try_for_each(|c| match c > '~' && is_hidden(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}")),
            false => fmt::Write::write_char(f, c),
        })
    }
}

/// Bytes in a table.
pub fn payload(bytes: &[u8], form: PayloadForm) -> String {
    match (form, std::str::from_utf8(bytes)) {
        (PayloadForm::None, _) => String::new(),
        (PayloadForm::Text, Ok(text)) => visible(text).into_owned(),
        (PayloadForm::Text, Err(_)) => format!("base64:{}", STANDARD.encode(bytes)),
        (PayloadForm::Base64, _) => STANDARD.encode(bytes),
        (PayloadForm::Hex, _) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// A value of an enum for people: `draining` of `NODE_STATE_DRAINING`.
pub fn word(name: &str, prefix: &str) -> String {
    match name.strip_prefix(prefix).unwrap_or(name) {
        "UNSPECIFIED" => "unknown".to_owned(),
        name => name.to_lowercase().replace('_', "-"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_shown_in_each_form() {
        let text = |bytes| payload(bytes, PayloadForm::Text);
        assert_eq!(text(b"hello"), "hello");
        assert_eq!(text("\u{e4}\n\x1b[2J".as_bytes()), "\u{e4}\\n\\u{1b}[2J");
        assert_eq!(text(&[0xff, 0]), "base64:/wA=");
        assert_eq!(payload(&[0xff, 0], PayloadForm::Hex), "ff00");
        assert_eq!(payload(b"a", PayloadForm::Base64), "YQ==");
        assert_eq!(payload(b"a", PayloadForm::None), "");
    }

    #[test]
    fn json_has_nothing_that_a_terminal_would_obey() {
        let evil = "\x1b]0;x\x07\x7f\u{9b}31m\u{202e}\u{200b}\u{feff}\u{e4}\u{1f600}\n";
        let value = json!({ evil: [evil] });
        for printed in [Json(&value).to_string(), format!("{:#}", Json(&value))] {
            assert!(!printed.chars().any(|c| is_hidden(c) && c != '\n'), "{printed:?}");
            assert!(printed.contains("\\u009b31m\\u202e\\u200b\\ufeff\u{e4}\u{1f600}"), "{printed}");
            assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), value);
        }
    }
}
