//! Texts of callers, as they are written down: without what could forge a line or hide a part of it.

/// Stands for what is left out at the end.
const CUT: &str = "…";
/// Stands for a character that is not shown.
const REPLACED: char = '\u{fffd}';

/// A text of so many bytes at most. Control characters and marks of direction are replaced.
pub fn clean(text: &str, max: usize) -> String {
    let mut cleaned = String::with_capacity(text.len().min(max));
    for character in text.chars() {
        let character = if is_harmful(character) { REPLACED } else { character };
        if cleaned.len() + character.len_utf8() > max {
            cleaned.truncate(cleaned.floor_char_boundary(max.saturating_sub(CUT.len())));
            if cleaned.len() + CUT.len() <= max {
                cleaned.push_str(CUT);
            }
            break;
        }
        cleaned.push(character);
    }
    cleaned
}

fn is_harmful(character: char) -> bool {
    let direction = '\u{202a}'..='\u{202e}';
    let isolate = '\u{2066}'..='\u{2069}';
    let mark = '\u{200b}'..='\u{200f}';
    let line = '\u{2028}'..='\u{2029}';
    character.is_control() || [direction, isolate, mark, line].iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        for (text, max, expected) in [
            ("", 0, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "…"),
            ("abcdef", 5, "ab…"),
            ("äöü", 5, "ä…"),
            ("abcd", 2, ""),
        ] {
            assert_eq!(clean(text, max), expected, "{text}");
        }
        for max in 0..40 {
            assert!(clean(&"ä\n€𝄞".repeat(4), max).len() <= max);
        }
    }

    #[test]
    fn nothing_in_it_forges_a_line_or_hides() {
        let cleaned = clean("a\nb\u{1b}[2J\u{202e}c\u{2028}d\u{7f}\u{85}", 100);
        assert_eq!(cleaned, "a\u{fffd}b\u{fffd}[2J\u{fffd}c\u{fffd}d\u{fffd}\u{fffd}");
    }
}
