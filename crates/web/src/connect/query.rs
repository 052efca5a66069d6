//! The parameters of a GET: `?connect=v1&encoding=json&message=…[&base64=1][&compression=gzip]`.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use forebay_types::{Refusal, instead};

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

/// The parameters of a call.
const PARAMETERS: [&str; 5] = ["connect", "encoding", "message", "base64", "compression"];
/// The most bytes that are told of a name that is not known.
const NAME_BYTES_MAX: usize = 100;

/// Reads a query.
pub fn read(query: &str) -> Result<Query, Failure> {
    let (mut codec, mut message, mut base64, mut gzip) = (None, None, false, false);
    let mut seen = [false; PARAMETERS.len()];
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(place) = PARAMETERS.iter().position(|known| *known == name) else {
            return Err(refused(
                &name,
                &format!("is no parameter of a call; {}", instead(&name, PARAMETERS)),
            ));
        };
        if std::mem::replace(&mut seen[place], true) {
            return Err(refused(&name, "is there twice"));
        }
        match &*name {
            "connect" if value != "v1" => {
                return Err(Failure::invalid(format!("the parameter connect is {value:?}; it must be v1")));
            }
            "connect" => {}
            "encoding" => codec = Some(Codec::named(&value)?),
            "message" => message = Some(value),
            "base64" => base64 = value == "1",
            _ => gzip = named_compression(&value)?,
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

/// A POST has its message in the body.
pub fn refuse(query: &str) -> Result<(), Failure> {
    match form_urlencoded::parse(query.as_bytes()).next() {
        Some((name, _)) => {
            Err(refused(&name, "is a parameter, and a POST has none: the message is its body"))
        }
        None => Ok(()),
    }
}

fn refused(name: &str, why: &str) -> Failure {
    Refusal::field(&name[..name.floor_char_boundary(NAME_BYTES_MAX)], why).into()
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
            "message=%7B%22a%22%3a%201%7D&encoding=json&",
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
    fn a_post_has_no_parameters() {
        assert!(refuse("").is_ok() && refuse("&").is_ok());
        let message = refuse("namespace=a").unwrap_err().message().to_owned();
        assert!(message.contains("namespace: is a parameter") && message.contains("body"), "{message}");
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
            ("encoding=json&message=x&other=x", "other: is no parameter of a call; there are connect,"),
            ("encoding=json&mesage=x", "mesage: is no parameter of a call; did you mean message?"),
            ("encoding=json&message=x&message=y", "message: is there twice"),
        ] {
            let message = read(query).unwrap_err().message().to_owned();
            assert!(message.contains(named), "{query}: {message}");
        }
    }
}
