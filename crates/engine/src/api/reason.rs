//! The common text of failures of one kind: the parts of a reason that differ from item to item are replaced.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// Bytes of a reason that are looked at.
pub(crate) const REASON_BYTES: usize = 256;
/// Stands for a number.
const NUMBER: &str = "<n>";
/// Stands for a number in hexadecimal digits.
const HEX: &str = "<hex>";
/// Stands for a UUID.
const UUID: &str = "<uuid>";
/// Stands for what is in quotes.
const QUOTED: &str = "<…>";
/// A run of hexadecimal digits is a number from this length on. Shorter ones may be words.
const HEX_LENGTH_MIN: usize = 8;
/// How many digits the parts of a UUID have.
const UUID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// The name of a dead letter's group: the text that its reason has in common with others, or how it died if
/// it has none. Only the beginning of a reason counts, as groups read no more of it.
pub(crate) fn of_death(cause: &str, reason: &str) -> String {
    match normalised(&reason[..reason.floor_char_boundary(REASON_BYTES)]) {
        none if none.is_empty() => cause.to_owned(),
        normal => normal,
    }
}

/// The text without what differs: digits, hexadecimal numbers, UUIDs, quoted texts, kinds of blanks.
fn normalised(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            let length = rest.find(|it| !is_word(it)).unwrap_or(rest.len());
            add_word(&mut normal, &rest[..length]);
            length
        } else if let Some(length) = quoted(rest, normal.chars().next_back()) {
            normal.push_str(QUOTED);
            length
        } else {
            let is_blank = first.is_whitespace() || first.is_control();
            match is_blank {
                true if normal.is_empty() || normal.ends_with(' ') => {}
                true => normal.push(' '),
                false => normal.push(first),
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    normal.truncate(normal.trim_end().len());
    normal
}

/// Names a normalised text.
pub(crate) fn fingerprint(normal: &str) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(normal.as_bytes());
    format!("{:016x}", hasher.finish())
}

fn is_word(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '-'
}

/// The length of a quoted text that begins here. A quote behind a letter is an apostrophe, and one without
/// its end is none.
fn quoted(text: &str, before: Option<char>) -> Option<usize> {
    let quote = text.chars().next().filter(|it| matches!(it, '"' | '\'' | '`'))?;
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inside = text[1..].find(quote)?;
    let behind = text[inside + 2..].chars().next();
    (quote != '\'' || !behind.is_some_and(char::is_alphanumeric)).then_some(inside + 2)
}

fn add_word(normal: &mut String, word: &str) {
    let lengths = word.split('-').map(str::len);
    if lengths.eq(UUID_PARTS) && word.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit()) {
        return normal.push_str(UUID);
    }
    for (number, part) in word.split('-').enumerate() {
        if number > 0 {
            normal.push('-');
        }
        add_part(normal, part);
    }
}

fn add_part(normal: &mut String, part: &str) {
    let digits = |text: &str| text.bytes().all(|it| it.is_ascii_hexdigit());
    let has_digit = part.bytes().any(|it| it.is_ascii_digit());
    let has_letter = part.bytes().any(|it| it.is_ascii_alphabetic());
    let prefixed = part.strip_prefix("0x").is_some_and(|rest| !rest.is_empty() && digits(rest));
    if prefixed || has_digit && has_letter && part.len() >= HEX_LENGTH_MIN && digits(part) {
        return normal.push_str(HEX);
    }
    let mut in_number = false;
    for it in part.chars() {
        match it.is_ascii_digit() {
            true if in_number => {}
            true => normal.push_str(NUMBER),
            false => normal.push(it),
        }
        in_number = it.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_item_to_item_is_replaced() {
        for (text, expected) in [
            ("", ""),
            ("timeout", "timeout"),
            ("timeout after 31.5s", "timeout after <n>.<n>s"),
            ("user 4711: no such user", "user <n>: no such user"),
            ("worker-7 at 10.0.0.1:7420", "worker-<n> at <n>.<n>.<n>.<n>:<n>"),
            ("item 7f1de5f2-0c9b-4b5e-9d53-0a4e7b1f2c3d", "item <uuid>"),
            ("commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "commit <hex>"),
            ("at 0xDEADBEEF", "at <hex>"),
            ("facade decade", "facade decade"),
            ("no user 'bob' in \"main db\"", "no user <…> in <…>"),
            ("can't open 'x': it's gone", "can't open <…>: it's gone"),
            ("an \"open end", "an \"open end"),
            ("  two\t\nlines\u{1b} ", "two lines"),
            ("größe 12 überschritten", "größe <n> überschritten"),
        ] {
            assert_eq!(normalised(text), expected, "{text}");
        }
    }

    #[test]
    fn a_group_is_called_by_its_reason_or_by_how_it_died() {
        assert_eq!(of_death("nacked", "user 7"), "user <n>");
        assert_eq!(of_death("lease ended", "  "), "lease ended");
        // A reason's text behind its beginning makes no other group, nor does a cut inside a character.
        let long = "ä".repeat(REASON_BYTES);
        assert_eq!(of_death("nacked", &long), of_death("nacked", &long[..REASON_BYTES]));
        let odd = format!("x{long}");
        assert_eq!(of_death("nacked", &odd), odd[..REASON_BYTES - 1]);
    }

    /// Filters and people keep it: it must stay as it is.
    #[test]
    fn a_fingerprint_names_a_text() {
        assert_eq!(fingerprint("timeout").len(), 16);
        assert_ne!(fingerprint("timeout"), fingerprint("time-out"));
        assert_eq!(fingerprint(""), "d1fba762150c532c");
    }
}
