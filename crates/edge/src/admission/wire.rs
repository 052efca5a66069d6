//! Checks what the protocol asks of a call, and of which nothing else would say that it is wrong.

use std::time::Duration;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use forebay_types::{Reason, Refusal};
use http::HeaderMap;

use crate::rpc::frame::framed_bytes;

/// The time that a call has.
const TIMEOUT: &str = "grpc-timeout";
/// How the names of headers end whose values are base64.
const BINARY: &str = "-bin";
/// With padding or without, as the protocol has it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Refuses a head that is malformed.
pub fn check_head(headers: &HeaderMap) -> Result<(), Refusal> {
    timeout(headers)?;
    for (name, value) in headers.iter().filter(|(name, _)| name.as_str().ends_with(BINARY)) {
        // Several values may be in one, with commas.
        let mut values = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        if !values.all(|value| BASE64.decode(value).is_ok()) {
            return Err(invalid(&format!("the header {name} is not base64")));
        }
    }
    Ok(())
}

/// The header `grpc-timeout`: up to 8 digits and a unit.
pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let mut values = headers.get_all(TIMEOUT).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    match duration(text).filter(|_| values.next().is_none()) {
        Some(duration) => Ok(Some(duration)),
        None => Err(invalid(&format!(
            "{TIMEOUT} is {text:?}; it must be one value of 1 to 8 digits and a unit: H, M, S, m, u or n"
        ))),
    }
}

fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let valid = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| valid)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Refuses a request that has more than the one message that would be served.
pub fn check_message(request: &[u8]) -> Result<(), Refusal> {
    match framed_bytes(request) {
        Some(bytes) if bytes < request.len() => {
            Err(invalid("the request has more than one message, of which one alone would be served"))
        }
        // A message that is cut is left to the decoder.
        _ => Ok(()),
    }
}

fn invalid(message: &str) -> Refusal {
    Refusal::new(Reason::InvalidField, message)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        list.iter().map(pair).collect()
    }

    #[test]
    fn a_timeout_has_digits_and_a_unit() {
        let of = |text| timeout(&headers(&[(TIMEOUT, text)]));
        assert_eq!(of("5m").unwrap(), Some(Duration::from_millis(5)));
        assert_eq!(of("99999999H").unwrap(), Some(Duration::from_secs(99_999_999 * 3_600)));
        assert_eq!(of("1S").unwrap(), Some(Duration::from_secs(1)));
        assert_eq!(timeout(&HeaderMap::new()).unwrap(), None);
        for wrong in ["123456789S", "S", "", "+1S", "-1m", "1", "1x", "xyz", "1 S"] {
            let refused = of(wrong).unwrap_err();
            assert_eq!(refused.reason, Reason::InvalidField, "{wrong}");
            assert!(refused.message.contains("grpc-timeout"), "{refused}");
        }
        let mut twice = headers(&[(TIMEOUT, "1S")]);
        twice.append(TIMEOUT, HeaderValue::from_static("2S"));
        assert!(check_head(&twice).is_err());
    }

    #[test]
    fn binary_headers_are_base64() {
        for good in ["AQI", "AQI=", "", "AQID,AQI=, AQ"] {
            assert!(check_head(&headers(&[("x-data-bin", good)])).is_ok(), "{good}");
        }
        for wrong in ["A", "A*==", "AQI=,-"] {
            let refused = check_head(&headers(&[("x-data-bin", wrong)])).unwrap_err();
            assert_eq!(refused.message, "the header x-data-bin is not base64", "{wrong}");
        }
        assert!(check_head(&headers(&[("x-data", "*")])).is_ok());
    }

    #[test]
    fn one_message_alone_is_served() {
        let one = b"\0\0\0\0\x01x";
        assert!(check_message(one).is_ok() && check_message(b"").is_ok() && check_message(&one[..5]).is_ok());
        assert!(check_message(&[&one[..], one].concat()).is_err());
        assert!(check_message(&[&one[..], b"y"].concat()).is_err());
    }
}
