//! Formats numbers.

use crate::statistics::Summary;

/// At least two significant digits, and all digits before the decimal point.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size > 0.0 && size < 0.1 => format!("{value:.4}"),
        _ => format!("{value:.2}"),
    }
}

/// The median, then minimum and maximum in parentheses.
pub fn spread(of: &Summary) -> String {
    format!("{} ({}–{})", number(of.median), number(of.min), number(of.max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_digits() {
        assert_eq!(number(12_345.6), "12346");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.567), "0.57");
        assert_eq!(number(0.002), "0.0020");
        assert_eq!(number(0.0), "0.00");
        assert_eq!(spread(&Summary { median: 1.0, min: 0.5, max: 20.0 }), "1.00 (0.50–20.0)");
    }
}
