//! Which headers a call takes along, and which its answer brings back.

use http::{
    HeaderMap, HeaderName,
    header::{
        ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, DATE,
        EXPECT, HOST, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};

/// Headers of the protocols themselves, and those that must be no credential here.
const OWN: [HeaderName; 15] = [
    ACCEPT,
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    EXPECT,
    HOST,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
/// How headers of the protocols themselves begin.
const OWN_PREFIXES: [&str; 4] = ["grpc-", "connect-", "keep-alive", "proxy-connection"];

/// The metadata of a call, by the headers of its request.
pub fn of_request(headers: &HeaderMap) -> HeaderMap {
    kept(headers).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers of an answer, by the metadata before its message and behind it. Binary values are base64 in
/// both protocols.
pub(crate) fn of_answer(leading: &HeaderMap, trailing: &HeaderMap) -> HeaderMap {
    let mut headers = of_request(leading);
    for (name, value) in kept(trailing) {
        // A name is valid with a prefix that is.
        if let Ok(name) = HeaderName::try_from(format!("trailer-{name}")) {
            headers.append(name, value.clone());
        }
    }
    headers
}

fn kept(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &http::HeaderValue)> {
    headers.iter().filter(|(name, _)| {
        !OWN.contains(name) && !OWN_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        list.iter().map(pair).collect()
    }

    #[test]
    fn headers_of_the_protocols_and_cookies_stay_behind() {
        let given = headers(&[
            ("authorization", "Bearer t"),
            ("traceparent", "00-1"),
            ("x-data-bin", "AQI"),
            ("cookie", "session=1"),
            ("grpc-timeout", "1H"),
            ("grpc-encoding", "gzip"),
            ("connect-timeout-ms", "5"),
            ("content-type", "application/json"),
            ("host", "h"),
        ]);
        let kept = headers(&[("authorization", "Bearer t"), ("traceparent", "00-1"), ("x-data-bin", "AQI")]);
        assert_eq!(of_request(&given), kept);
    }

    #[test]
    fn metadata_behind_the_message_has_a_prefix() {
        let leading = headers(&[("content-type", "application/grpc"), ("a", "1")]);
        let trailing = headers(&[("grpc-status", "0"), ("b-bin", "AQI")]);
        assert_eq!(of_answer(&leading, &trailing), headers(&[("a", "1"), ("trailer-b-bin", "AQI")]));
    }
}
