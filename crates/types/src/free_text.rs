//! Texts for people: why something failed, who works, what a change is for. One that is too long is cut, and
//! says so. It is never a reason to refuse what it is about.

/// Stands for what is left out.
const CUT: &str = "…";

/// Where a text that is too long is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutAt {
    /// Its end is left out.
    End,
    /// Its beginning is left out.
    Beginning,
}

impl CutAt {
    /// The text in at most `max` bytes. What was cut off is not held any longer.
    pub fn cut(self, text: &mut String, max: usize) {
        if text.len() <= max {
            return;
        }
        // There may be no room to say that something is left out.
        let mark = if max >= CUT.len() { CUT } else { "" };
        let rest = max - mark.len();
        *text = match self {
            Self::End => format!("{}{mark}", &text[..text.floor_char_boundary(rest)]),
            Self::Beginning => format!("{mark}{}", &text[text.ceil_char_boundary(text.len() - rest)..]),
        };
    }
}

/// Cuts the end of a text off that has more than `max` bytes.
pub fn cut_text(text: &mut String, max: usize) {
    CutAt::End.cut(text, max);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        for (text, max, end, beginning) in [
            ("", 0, "", ""),
            ("abc", 3, "abc", "abc"),
            ("abcd", 3, "…", "…"),
            ("abcdef", 5, "ab…", "…ef"),
            ("äöü", 5, "ä…", "…ü"),
            ("aöü", 4, "a…", "…"),
            ("abcd", 2, "ab", "cd"),
            ("ä", 1, "", ""),
        ] {
            let (mut one, mut other) = (text.to_owned(), text.to_owned());
            CutAt::End.cut(&mut one, max);
            CutAt::Beginning.cut(&mut other, max);
            assert_eq!((&*one, &*other), (end, beginning), "{text} of {max}");
        }
    }

    #[test]
    fn what_is_cut_off_is_not_held() {
        let mut text = "é".repeat(1 << 20);
        cut_text(&mut text, 1_024);
        assert!(text.len() <= 1_024 && text.len() > 1_020 && text.capacity() < 4_096);
        let once = text.clone();
        cut_text(&mut text, 1_024);
        assert_eq!(text, once);
    }
}
