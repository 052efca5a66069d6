//! When deliveries that fail are a trouble: the same on every page.

use forebay_proto::v1::Rates;

/// From this part of failed deliveries on.
const MANY: f64 = 0.2;

/// The part of the deliveries that failed, of those that ended. 0: none has ended.
pub fn part(rates: &Rates) -> f64 {
    let ended = rates.acked + rates.failed;
    if ended > 0.0 { rates.failed / ended } else { 0.0 }
}

/// Whether such a part is a trouble.
pub(crate) fn is_much(part: f64) -> bool {
    part >= MANY
}

/// The class of such a part.
pub fn class(part: f64) -> &'static str {
    if is_much(part) { "bad" } else { "none" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_failures_are_a_trouble() {
        assert_eq!([0.0, 0.19, 0.2, 1.0].map(class), ["none", "none", "bad", "bad"]);
        let of = |acked, failed| part(&Rates { acked, failed, ..Rates::default() });
        assert_eq!([of(0.0, 0.0), of(3.0, 1.0), of(0.0, 2.0)], [0.0, 0.25, 1.0]);
    }
}
