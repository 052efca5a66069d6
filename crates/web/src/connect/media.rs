//! The headers of a request about its body: its type, its compression, and which compression the answer may
//! have.

use http::{
    HeaderMap,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderName},
};

use super::failure::{Failure, JSON};

/// The type of protobuf.
pub(crate) const PROTO: &str = "application/proto";

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// The JSON of protobuf.
    Json,
    /// Protobuf itself.
    Proto,
}

impl Codec {
    /// By `Content-Type`. A type may have parameters; the only charset is UTF-8.
    pub(crate) fn of_body(headers: &HeaderMap) -> Result<Self, Failure> {
        let given = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        let unread = || {
            let given = given.map_or_else(|| "is missing".to_owned(), |given| format!("is {given:?}"));
            Failure::media_type(format!("the Content-Type {given}; use {JSON} or {PROTO}"))
        };
        let mut parts = given.unwrap_or_default().split(';').map(str::trim);
        let codec = match parts.next().unwrap_or_default() {
            kind if kind.eq_ignore_ascii_case(JSON) => Self::Json,
            kind if kind.eq_ignore_ascii_case(PROTO) => Self::Proto,
            _ => return Err(unread()),
        };
        for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
            let charset = name.trim().eq_ignore_ascii_case("charset");
            if charset && !value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8") {
                return Err(unread());
            }
        }
        Ok(codec)
    }

    /// By the parameter `encoding` of a GET.
    pub fn named(name: &str) -> Result<Self, Failure> {
        match name {
            "json" => Ok(Self::Json),
            "proto" => Ok(Self::Proto),
            _ => Err(Failure::media_type(format!("the encoding {name:?} is unknown; use json or proto"))),
        }
    }

    /// The `Content-Type` of an answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => JSON,
            Self::Proto => PROTO,
        }
    }
}

/// Whether a body is compressed with gzip, by `Content-Encoding`.
pub(crate) fn is_gzip(headers: &HeaderMap) -> Result<bool, Failure> {
    match text(headers, &CONTENT_ENCODING)? {
        None => Ok(false),
        Some(name) => named_compression(name),
    }
}

/// Whether a compression is gzip. Others than gzip and none are not supported.
pub(crate) fn named_compression(name: &str) -> Result<bool, Failure> {
    match name.trim() {
        "" => Ok(false),
        name if name.eq_ignore_ascii_case("identity") => Ok(false),
        name if name.eq_ignore_ascii_case("gzip") => Ok(true),
        name => {
            let message = format!("the compression {name:?} is not supported; use gzip or identity");
            Err(Failure::unimplemented(message))
        }
    }
}

/// Whether the answer may be compressed with gzip, by `Accept-Encoding`.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let mut choices = values.flat_map(|value| value.split(','));
    choices.any(|choice| {
        let (name, quality) = choice.split_once(';').unwrap_or((choice, "q=1"));
        let quality = quality.trim().strip_prefix("q=").unwrap_or("1").trim();
        name.trim().eq_ignore_ascii_case("gzip") && quality.parse::<f32>().is_ok_and(|quality| quality > 0.0)
    })
}

/// The text of a header, if it is there.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Failure> {
    let text = headers.get(name).map(|value| value.to_str());
    text.transpose().map_err(|_| Failure::invalid(format!("the header {name} is not text")))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn a_type_may_have_parameters_and_one_charset() {
        for (given, expected) in [
            ("application/json", Codec::Json),
            ("Application/JSON; charset=utf-8", Codec::Json),
            ("application/json;charset=\"UTF-8\"; x=y", Codec::Json),
            ("application/proto", Codec::Proto),
        ] {
            assert_eq!(Codec::of_body(&headers(CONTENT_TYPE, given)).unwrap(), expected, "{given}");
        }
        for wrong in [
            "",
            "text/plain",
            "application/json; charset=latin-1",
            "application/connect+json",
            "application/grpc",
            "application/grpc-web+proto",
            "application/x-www-form-urlencoded",
        ] {
            let answer = Codec::of_body(&headers(CONTENT_TYPE, wrong)).unwrap_err().answer(None);
            assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{wrong}");
            assert_eq!(answer.headers()["accept-post"], "application/json, application/proto");
        }
        assert!(Codec::of_body(&HeaderMap::new()).is_err());
    }

    #[test]
    fn gzip_and_identity_are_read() {
        assert!(is_gzip(&headers(CONTENT_ENCODING, "GZIP")).unwrap());
        assert!(!is_gzip(&headers(CONTENT_ENCODING, "identity")).unwrap());
        assert!(!is_gzip(&HeaderMap::new()).unwrap());
        let refused = is_gzip(&headers(CONTENT_ENCODING, "br")).unwrap_err();
        assert_eq!(refused.answer(None).status(), StatusCode::NOT_IMPLEMENTED);
        assert!(refused.message().contains("gzip or identity"), "{}", refused.message());
    }

    #[test]
    fn an_answer_is_compressed_if_the_caller_can_read_that() {
        for yes in ["gzip", "br, gzip", "deflate, GZIP;q=0.5"] {
            assert!(accepts_gzip(&headers(ACCEPT_ENCODING, yes)), "{yes}");
        }
        for no in ["", "br", "gzip;q=0", "gzip; q=0.0", "x-gzip", "identity"] {
            assert!(!accepts_gzip(&headers(ACCEPT_ENCODING, no)), "{no}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
