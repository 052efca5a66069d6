//! The parameters of a GET: `?connect=v1&encoding=json&message=…[&base64=1][&compression=gzip]`.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;

use super::{
    failure::Failure,
    media::{Codec, named_compression},
};

/// The alphabet of URLs, with padding or without.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The request in a query.
#[derive(Debug, PartialEq, Eq)]
pub struct Query {
    /// How the message is written.
    pub codec: Codec,
    /// It is compressed.
    pub gzip: bool,
    /// The message.
    pub message: Bytes,
}

/// Reads a query. Unknown parameters are ignored.
pub fn read(query: &str) -> Result<Query, Failure> {
    let (mut codec, mut message, mut base64, mut gzip) = (None, None, false, false);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "connect" if value != "v1" => {
                return Err(Failure::invalid(format!("the parameter connect is {value:?}; it must be v1")));
            }
            "encoding" => codec = Some(Codec::named(&value)?),
            "message" => message = Some(value),
            "base64" => base64 = value == "1",
            "compression" => gzip = named_compression(&value)?,
            _ => {}
        }
    }
    let missing = |name: &str| Failure::invalid(format!("the parameter {name} is missing"));
    let codec = codec.ok_or_else(|| missing("encoding"))?;
    let message = message.ok_or_else(|| missing("message"))?;
    let message = match base64 {
        false => Bytes::from(message.into_owned().into_bytes()),
        true => {
            let decoded = URL_SAFE.decode(message.as_bytes());
            let wrong = |error| Failure::invalid(format!("the parameter message is not base64: {error}"));
            Bytes::from(decoded.map_err(wrong)?)
        }
    };
    Ok(Query { codec, gzip, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(query: &str) -> (Codec, bool, Bytes) {
        let Query { codec, gzip, message } = read(query).unwrap();
        (codec, gzip, message)
    }

    #[test]
    fn parameters_come_in_any_order() {
        let plain = (Codec::Json, false, Bytes::from_static(b"{\"a\": 1}"));
        for query in [
            "connect=v1&encoding=json&message=%7B%22a%22%3A+1%7D",
            "message=%7B%22a%22%3a%201%7D&encoding=json&other=x&",
            "base64=1&message=eyJhIjogMX0&encoding=json",
            "base64=1&message=eyJhIjogMX0%3D&encoding=json",
        ] {
            assert_eq!(message(query), plain, "{query}");
        }
        let empty = message("encoding=proto&message=&compression=gzip&base64=1");
        assert_eq!(empty, (Codec::Proto, true, Bytes::new()));
        assert_eq!(message("base64=1&encoding=proto&message=-_8").2, Bytes::from_static(&[0xfb, 0xff]));
    }

    #[test]
    fn each_wrong_parameter_is_named() {
        for (query, named) in [
            ("", "encoding"),
            ("encoding=json", "message"),
            ("message=x", "encoding"),
            ("encoding=xml&message=x", "encoding"),
            ("encoding=json&message=x&connect=v2", "connect"),
            ("encoding=json&message=x&compression=br", "compression"),
            ("encoding=json&message=!&base64=1", "message"),
        ] {
            let message = read(query).unwrap_err().message().to_owned();
            assert!(message.contains(named), "{query}: {message}");
        }
    }
}
