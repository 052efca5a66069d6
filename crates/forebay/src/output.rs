//! Prints results: a table for people, or JSON for programs.

use std::{
    io::{self, Write as _},
    time::{Duration, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use forebay_client::{Error, Timestamp};
use serde_json::{Value, json};

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Columns for people.
    Table,
    /// One JSON document.
    Json,
}

/// Prints a JSON document.
pub fn json(value: &Value) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{value:#}")
}

/// Prints a table with aligned columns.
pub fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> io::Result<()> {
    let mut widths = head.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = io::stdout().lock();
    let mut line = |cells: [&str; N]| {
        let mut text = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            text.push_str(cell);
            let gap = width.saturating_sub(cell.chars().count()) + 2;
            text.extend(std::iter::repeat_n(' ', gap));
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(head)?;
    rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str)))
}

/// Bytes in a table: text with control characters escaped, or base64.
pub fn cell(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let visible = |c: char| if c.is_control() { c.escape_default().collect() } else { c.to_string() };
            text.chars().map(visible).collect()
        }
        Err(_) => format!("base64:{}", STANDARD.encode(bytes)),
    }
}

/// Bytes in JSON, as protobuf's JSON has them.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A time in the format of RFC 3339.
pub fn time(time: Timestamp) -> String {
    let micros = u64::try_from(time.as_micros()).unwrap_or(0);
    humantime::format_rfc3339_micros(UNIX_EPOCH + Duration::from_micros(micros)).to_string()
}

/// The error of one member, in JSON.
pub fn refusal(error: &Error) -> Value {
    json!({
        "code": format!("{:?}", error.code()),
        "reason": error.reason().map(|reason| reason.as_str()),
        "message": error.message(),
        "field": error.field(),
        "item": error.fate().map(|fate| fate.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_printed_as_text_if_they_are_text() {
        assert_eq!(cell(b"hello"), "hello");
        assert_eq!(cell("ä\n\x1b[2J".as_bytes()), "ä\\n\\u{1b}[2J");
        assert_eq!(cell(&[0xff, 0]), "base64:/wA=");
    }

    #[test]
    fn times_are_readable() {
        assert_eq!(time(Timestamp::from_micros(1_700_000_000_000_001)), "2023-11-14T22:13:20.000001Z");
    }
}
