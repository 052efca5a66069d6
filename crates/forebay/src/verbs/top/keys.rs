//! Keys, as a terminal sends them.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Return.
    Enter,
    /// Escape alone.
    Escape,
    /// Deletes a character.
    Backspace,
    /// One up.
    Up,
    /// One down.
    Down,
    /// Ctrl-C, Ctrl-D, or the end of the input.
    End,
    /// Any other one.
    Other,
}

/// The keys in what was read at once. Nothing read is the end.
pub fn parse(mut bytes: &[u8]) -> Vec<Key> {
    if bytes.is_empty() {
        return vec![Key::End];
    }
    let mut keys = Vec::new();
    while let Some((&first, rest)) = bytes.split_first() {
        let (key, left) = match (first, rest) {
            (3 | 4, _) => (Key::End, rest),
            (b'\r' | b'\n', _) => (Key::Enter, rest),
            (8 | 127, _) => (Key::Backspace, rest),
            (0x1b, [b'[' | b'O', b'A', left @ ..]) => (Key::Up, left),
            (0x1b, [b'[' | b'O', b'B', left @ ..]) => (Key::Down, left),
            // A sequence ends with a letter or a tilde.
            (0x1b, [b'[' | b'O', left @ ..]) => {
                let end = left.iter().position(|byte| (0x40..=0x7e).contains(byte));
                (Key::Other, end.map_or(&[][..], |end| &left[end + 1..]))
            }
            (0x1b, []) => (Key::Escape, rest),
            (0x1b, [_, left @ ..]) => (Key::Other, left),
            (0x20..=0x7e, _) => (Key::Char(char::from(first)), rest),
            _ => (Key::Other, rest),
        };
        keys.push(key);
        bytes = left;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_one_key() {
        let keys = parse(b"a\x1b[A\x1b[B\x1bOA\x1b[15~\x1bx\r\x7f\xc3");
        use Key::{Backspace, Char, Down, Enter, Other, Up};
        assert_eq!(keys, [Char('a'), Up, Down, Up, Other, Other, Enter, Backspace, Other]);
        assert_eq!(
            (parse(b"\x1b"), parse(b"\x03"), parse(b"")),
            (vec![Key::Escape], vec![Key::End], vec![Key::End])
        );
        assert_eq!(parse(b"\x1b[1;"), [Other], "a cut sequence");
    }
}
