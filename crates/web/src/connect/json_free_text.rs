//! Halves of surrogate pairs in texts for people, which JSON can write (`"\udc80"`) and UTF-8 can't. Python
//! and JavaScript write the name of a file like that, in the reason of a failure. Each is replaced. In all
//! other texts they are refused, since two keys must not become one.

use std::borrow::Cow;

/// Fields with texts for people. They are not read otherwise.
const FIELDS: [&[u8]; 3] = [b"reason", b"note", b"consumer"];
/// Objects with keys of callers.
const MAP: &[u8] = b"headers";
/// The escape that replaces that of a half of a pair. Both are equally long.
const REPLACED: &[u8; 6] = b"\\ufffd";

/// The document without them. What is no JSON is left to the one who reads it.
pub fn mended(json: &[u8]) -> Cow<'_, [u8]> {
    let mut document = Document { json: Cow::Borrowed(json), at: 0 };
    // Few documents have one.
    if json.windows(3).any(|it| it == b"\\ud" || it == b"\\uD") {
        document.mend();
    }
    document.json
}

struct Document<'a> {
    /// The text.
    json: Cow<'a, [u8]>,
    /// Position of the next byte.
    at: usize,
}

impl Document<'_> {
    fn mend(&mut self) {
        // For each object or array around: whether its keys are those of fields.
        let mut around: Vec<bool> = Vec::new();
        let (mut is_free_text, mut is_map) = (false, false);
        while let Some(&byte) = self.json.get(self.at) {
            self.at += 1;
            match byte {
                b'{' | b'[' => around.push(!is_map),
                b'}' | b']' => drop(around.pop()),
                b'"' => {
                    let text = self.string();
                    if self.is_key() {
                        let key = self.json.get(text.clone()).unwrap_or_default();
                        let of_field = around.last().copied().unwrap_or(false);
                        is_free_text = of_field && FIELDS.contains(&key);
                        is_map = key == MAP;
                        continue;
                    }
                    if is_free_text {
                        self.replace(text);
                    }
                }
                b':' | b' ' | b'\t' | b'\r' | b'\n' => continue,
                _ => {}
            }
            (is_free_text, is_map) = (false, false);
        }
    }

    /// The inside of the string that has begun.
    fn string(&mut self) -> std::ops::Range<usize> {
        let begin = self.at;
        while let Some(&byte) = self.json.get(self.at) {
            match byte {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        let end = self.at.min(self.json.len());
        self.at = end + 1;
        begin..end
    }

    /// Whether a colon comes next.
    fn is_key(&self) -> bool {
        let rest = self.json.get(self.at..).unwrap_or_default();
        rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
    }

    fn replace(&mut self, text: std::ops::Range<usize>) {
        let mut at = text.start;
        while at < text.end {
            let unit = |at: usize| unit(self.json.get(at..text.end)?);
            match (unit(at), unit(at + REPLACED.len())) {
                (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 2 * REPLACED.len(),
                (Some(0xd800..0xe000), _) => {
                    let end = at + REPLACED.len();
                    self.json.to_mut()[at..end].copy_from_slice(REPLACED);
                    at = end;
                }
                _ if self.json[at] == b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }
}

/// The unit of UTF-16 that an escape stands for.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(json: &str) {
        assert!(matches!(mended(json.as_bytes()), Cow::Borrowed(_)), "{json}");
    }

    #[test]
    fn a_half_of_a_pair_is_replaced_in_texts_for_people() {
        for (json, expected) in [
            (
                r#"{"nacks": [{"reason" : "a\udc80b\"\uD83D"}]}"#,
                r#"{"nacks": [{"reason" : "a\ufffdb\"\ufffd"}]}"#,
            ),
            (r#"{"note":"\ud83d\ude00\ude00"}"#, r#"{"note":"\ud83d\ude00\ufffd"}"#),
            (r#"{"consumer":"\ud83d\n"}"#, r#"{"consumer":"\ufffd\n"}"#),
        ] {
            assert_eq!(String::from_utf8_lossy(&mended(json.as_bytes())), expected);
        }
    }

    #[test]
    fn nothing_else_is_changed() {
        for json in [
            r#"{"reason": "\ud83d\ude00 \\ud83d \u00e9"}"#,
            r#"{"requestId": "\ud83d", "items": [{"dedupeKey": "\udc00", "headers": {"reason": "\ud800"}}]}"#,
            r#"{"reason": ["\ud83d"], "x": "reason", "y": "\ud83d"}"#,
            r#""reason": "\ud83d"#,
        ] {
            same(json);
        }
    }

    #[test]
    fn what_is_no_json_makes_no_trouble() {
        for json in [
            r#"{"reason":"\"#,
            r#"{"reason":"\ud8"#,
            r#"{"reason":"\ud800\u"}"#,
            r#"]]{"\ud800"#,
            r#"{"reason":"\ud83d"#,
        ] {
            let mended = mended(json.as_bytes());
            assert_eq!(mended.len(), json.len(), "{json}");
        }
    }
}
