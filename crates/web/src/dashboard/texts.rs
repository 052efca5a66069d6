//! Numbers, spans and times as people read them.

use std::time::Duration;

use forebay_proto::time::{from_duration, from_timestamp};
use forebay_types::Timestamp;
use maud::{Markup, html};

/// A whole number with commas: `48,112`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How many, with the word for one: `1 item`, `2 items`.
pub fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(number))
}

/// A number a second: `0`, `0.25`, `3.1`, `48,112`. What is not known is `–`.
pub fn rate(number: f64) -> String {
    match number {
        number if !number.is_finite() => "–".to_owned(),
        number if number >= 99.5 => count(number.round() as u64),
        number if number >= 0.995 => format!("{number:.1}"),
        number if number >= 0.005 => format!("{number:.2}"),
        _ => "0".to_owned(),
    }
}

/// A part of a whole: `34 %`.
pub(crate) fn percent(part: f64) -> String {
    match part {
        part if !part.is_finite() => "–".to_owned(),
        part if part > 0.0 && part < 0.01 => "< 1 %".to_owned(),
        part => format!("{:.0} %", part * 100.0),
    }
}

/// A number of bytes: `512 B`, `1.5 KiB`.
pub fn bytes(number: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = number as f64;
    let mut unit = "B";
    for next in units {
        if size < 1_024.0 {
            break;
        }
        (size, unit) = (size / 1_024.0, next);
    }
    if unit == "B" { format!("{number} B") } else { format!("{size:.1} {unit}") }
}

/// A span of time with its two largest units: `120 ms`, `3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let two = |large: u64, unit: &str, small: u64, other: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {other}"),
    };
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600..86_400 => two(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => two(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// How long ago a time is. `–`: there is none.
pub fn age(at: Option<prost_types::Timestamp>, now: Timestamp) -> String {
    match at {
        Some(at) => span(now.since(from_timestamp(at)).max(Duration::from_secs(1))),
        None => "–".to_owned(),
    }
}

/// A time in UTC, to the second.
pub(crate) fn utc(at: Timestamp) -> String {
    // Up to the year 9999, which no time of ours is after.
    if at.as_micros() >= 253_402_300_800_000_000 {
        return "never".to_owned();
    }
    at.to_string().replace('T', " ").replace('Z', "")
}

/// A time, how long ago it is, or will be. `–`: there is none.
pub fn time(at: Option<prost_types::Timestamp>, now: Timestamp) -> Markup {
    let Some(at) = at.map(from_timestamp) else { return html! { "–" } };
    let text = utc(at);
    html! {
        time datetime=(text.replace(' ', "T") + "Z") title=(format!("{text} UTC")) {
            @if at > now { "in " (span(at.since(now))) } @else { (span(now.since(at))) " ago" }
        }
    }
}

/// How long something took. `–`: that is not known.
pub fn length(length: Option<prost_types::Duration>) -> String {
    length.map_or_else(|| "–".to_owned(), |length| span(from_duration(length)))
}

/// Bytes as text if they are UTF-8 without control characters but line breaks and tabs; or else `None`.
pub(crate) fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(plain).then_some(text)
}

/// The first line of bytes, at most so many characters of it; hexadecimal if they are no text.
pub(crate) fn first_line(bytes: &[u8], most: usize) -> String {
    // A payload that was cut may end inside a character.
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    match as_text(whole) {
        Some(text) => text.lines().next().unwrap_or_default().chars().take(most).collect(),
        None => hex(&bytes[..bytes.len().min(most / 2)]),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1_000, 48_112, 1_234_567].map(count),
            ["0", "999", "1,000", "48,112", "1,234,567"]
        );
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615", "beyond 2^53");
        assert_eq!([counted(1, "item"), counted(2_000, "item")], ["1 item", "2,000 items"]);
        assert_eq!(
            [0.0, 0.25, 3.123, 99.4, 99.6, 48_112.2, f64::NAN].map(rate),
            ["0", "0.25", "3.1", "99.4", "100", "48,112", "–"]
        );
        assert_eq!([0.0, 0.001, 0.344, 1.0].map(percent), ["0 %", "< 1 %", "34 %", "100 %"]);
        assert_eq!([512, 1_536, 3 << 30].map(bytes), ["512 B", "1.5 KiB", "3.0 GiB"]);
    }

    #[test]
    fn spans_have_two_units() {
        let all = [120, 3_000, 60_000, 250_000, 7_500_000, 273_600_000];
        assert_eq!(
            all.map(|millis| span(Duration::from_millis(millis))),
            ["120 ms", "3 s", "1 min", "4 min 10 s", "2 h 5 min", "3 d 4 h"]
        );
        let now = Timestamp::from_micros(10_000_000);
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        assert_eq!([age(at(4), now), age(at(10), now), age(None, now)], ["6 s", "1 s", "–"]);
        assert_eq!(utc(Timestamp::from_micros(1_000_000)), "1970-01-01 00:00:01");
        assert_eq!(utc(Timestamp::from_micros(i64::MAX)), "never");
        let shown = time(at(15), now).into_string();
        assert!(shown.contains(">in 5 s<") && shown.contains("1970-01-01T00:00:15Z"), "{shown}");
    }

    #[test]
    fn bytes_are_shown_as_they_are() {
        assert_eq!(first_line("one\ntwo".as_bytes(), 80), "one");
        assert_eq!(first_line(&"grün".as_bytes()[..3], 80), "gr", "a cut character is left out");
        assert_eq!(first_line(&[0, 1, 255], 80), "0001ff");
        assert_eq!(as_text(b"a\x1b[31m"), None, "no escape sequences");
    }
}
