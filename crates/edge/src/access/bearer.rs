//! The header `Authorization`.

use http::{HeaderMap, header::AUTHORIZATION};

/// The name of the scheme, in any case.
const SCHEME: &str = "bearer";

/// Credential in the headers of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PresentedCredential<'a> {
    /// No such header.
    Nothing,
    /// A token, or what is meant to be one.
    Token(&'a str),
    /// Another scheme, or no text.
    Other,
    /// Several of them. Which one is meant can't be known, and something in between may have looked at the
    /// other one.
    Several,
}

/// Reads the credential from the headers of a request.
pub fn shown(headers: &HeaderMap) -> PresentedCredential<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return PresentedCredential::Nothing };
    if values.next().is_some() {
        return PresentedCredential::Several;
    }
    let parts = value.to_str().ok().and_then(|text| text.split_once(' '));
    match parts {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(SCHEME) => {
            PresentedCredential::Token(token.trim())
        }
        _ => PresentedCredential::Other,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&'static [u8]]) -> HeaderMap {
        let pair = |value: &&'static [u8]| (AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        values.iter().map(pair).collect()
    }

    #[test]
    fn one_token_in_any_case_of_the_scheme() {
        assert_eq!(shown(&headers(&[])), PresentedCredential::Nothing);
        for text in [&b"Bearer abc"[..], b"bearer abc", b"BEARER  abc "] {
            assert_eq!(shown(&headers(&[text])), PresentedCredential::Token("abc"));
        }
        for text in [&b"abc"[..], b"", b"Basic abc", b"Bearerabc", b"Bearer\xff abc"] {
            assert_eq!(shown(&headers(&[text])), PresentedCredential::Other);
        }
        assert_eq!(shown(&headers(&[b"Bearer abc", b"Bearer abc"])), PresentedCredential::Several);
    }
}
