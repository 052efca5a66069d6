//! Reads values of flags.

use std::time::UNIX_EPOCH;

use clap::builder::{OsStringValueParser, TypedValueParser};
use forebay_client::Timestamp;

/// A point in time in the format of RFC 3339.
pub fn time(text: &str) -> Result<Timestamp, String> {
    let time = humantime::parse_rfc3339_weak(text).map_err(|error| error.to_string())?;
    let since = time.duration_since(UNIX_EPOCH).map_err(|_| "it is before 1970".to_owned())?;
    let micros = i64::try_from(since.as_micros()).map_err(|_| "it is too late".to_owned())?;
    Ok(Timestamp::from_micros(micros))
}

/// A text for people. What is not Unicode in it is replaced.
pub fn free_text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|text| text.to_string_lossy().into_owned())
}

/// A name and a value.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_pairs_are_read() {
        let micros = |text| time(text).map(Timestamp::as_micros);
        assert_eq!(micros("2023-11-14T22:13:20.5Z"), Ok(1_700_000_000_500_000));
        assert_eq!(micros("2023-11-14 22:13:20"), Ok(1_700_000_000_000_000));
        for wrong in ["", "tomorrow", "2023-11-14", "1960-01-01T00:00:00Z", "2023-13-01T00:00:00Z"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(pair("a").is_err() && pair("=b").is_err());
    }
}
