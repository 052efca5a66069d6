//! Numbers in base 62, with a fixed number of digits. A double click selects such a text as a whole.

/// The digits, in order.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether each character is a digit.
pub(crate) fn is_base62(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The last `length` digits of a number, which is in bytes with the highest first.
pub fn encode(number: &[u8], length: usize) -> String {
    let mut number = number.to_vec();
    let mut digits = Vec::with_capacity(length);
    for _ in 0..length {
        let mut rest = 0_usize;
        for byte in &mut number {
            let value = rest << 8 | usize::from(*byte);
            // 61 × 256 + 255 divided by 62 is at most 255.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        digits.push(char::from(DIGITS[rest]));
    }
    digits.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        for (number, text) in
            [(&[0][..], "0000"), (&[61], "000z"), (&[62], "0010"), (&[0xff, 0xff], "0H31"), (&[1, 0], "0048")]
        {
            assert_eq!(encode(number, 4), text);
        }
        assert_eq!(encode(&[0xff; 4], 6), "4gfFC3");
        // 256 bits take 43 digits, and nothing of them is lost.
        assert_ne!(encode(&[0xff; 32], 43).as_bytes()[0], b'0');
        assert!(encode(&[0xff; 32], 44).starts_with('0'));
    }
}
