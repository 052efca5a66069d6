//! Forms: what pages send, and that it was a page of this node which did.

use std::time::Duration;

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_edge::signing::SigningKey;
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Limited};
use subtle::ConstantTimeEq as _;

use crate::fields::Fields;

/// Where the form of the login is sent.
pub(crate) const LOGIN: &str = "/login";
/// The field with the signature of a form.
pub(crate) const SIGNATURE: &str = "form";
/// The field with the namespace that a page or a form is about.
pub const NAMESPACE: &str = "ns";
/// A larger form is none.
const FORM_BYTES_MAX: usize = 16 << 10;
/// A form arrives within this time.
const FORM_TIMEOUT: Duration = Duration::from_secs(10);
/// The type of forms.
const TYPE: &str = "application/x-www-form-urlencoded";

/// Signs forms. A signature is valid for one session, or one caller without one, and for one form.
#[derive(Clone)]
pub struct FormKey(SigningKey);

impl FormKey {
    /// Of secrets that all nodes share behind a balancer.
    pub fn new(secrets: &[&[u8]]) -> Self {
        Self(SigningKey::new("forebay forms", secrets))
    }

    /// The signature of a form. `bound`: what names the session. `path`: where the form is sent.
    pub fn sign(&self, bound: &[u8; 32], path: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(&[bound, path.as_bytes()]))
    }

    /// Whether a signature is that of a form.
    pub fn accepts(&self, signature: &str, bound: &[u8; 32], path: &str) -> bool {
        self.sign(bound, path).as_bytes().ct_eq(signature.as_bytes()).into()
    }
}

/// Why a form can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// It is no form.
    Type,
    /// It has too many bytes.
    TooLarge,
    /// It did not arrive.
    Late,
    /// Its sender went away.
    Cut,
}

/// Receives a form.
pub async fn receive(headers: &HeaderMap, body: Body) -> Result<Fields, Unreadable> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim();
    if !given.eq_ignore_ascii_case(TYPE) || headers.contains_key(CONTENT_ENCODING) {
        return Err(Unreadable::Type);
    }
    let received = tokio::time::timeout(FORM_TIMEOUT, Limited::new(body, FORM_BYTES_MAX).collect()).await;
    match received {
        Ok(Ok(whole)) => Ok(Fields::read(&whole.to_bytes())),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Unreadable::TooLarge),
        Ok(Err(_)) => Err(Unreadable::Cut),
        Err(_) => Err(Unreadable::Late),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_signature_is_for_one_session_and_one_form() {
        let key = FormKey::new(&[b"secret"]);
        let signature = key.sign(&[1; 32], "/logout");
        assert!(key.accepts(&signature, &[1; 32], "/logout"));
        assert!(FormKey::new(&[b"secret"]).accepts(&signature, &[1; 32], "/logout"), "at each node");
        assert!(!FormKey::new(&[b"other"]).accepts(&signature, &[1; 32], "/logout"));
        assert!(!key.accepts(&signature, &[2; 32], "/logout"));
        assert!(!key.accepts(&signature, &[1; 32], "/login"));
        for wrong in ["", &signature[1..], &format!("{signature}A"), &"A".repeat(signature.len())] {
            assert!(!key.accepts(wrong, &[1; 32], "/logout"), "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_is_read_within_its_bounds() {
        let typed = |text| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
        let read = async |headers: &HeaderMap, body: Vec<u8>| receive(headers, Body::from(body)).await;
        let form = typed("application/x-www-form-urlencoded; charset=UTF-8");
        let fields = read(&form, b"a=1+2&b=%2F&a=3&c".to_vec()).await.unwrap();
        assert_eq!(
            [fields.get("a"), fields.get("b"), fields.get("c"), fields.get("d")],
            ["1 2", "/", "", ""]
        );
        assert!(fields.repeats("a") && !fields.repeats("b") && !fields.repeats("d"));
        for wrong in ["multipart/form-data", "text/plain", "application/json", ""] {
            assert_eq!(read(&typed(wrong), b"a=1".to_vec()).await, Err(Unreadable::Type), "{wrong}");
        }
        assert_eq!(read(&HeaderMap::new(), b"a=1".to_vec()).await, Err(Unreadable::Type));
        let mut packed = form.clone();
        packed.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(read(&packed, b"a=1".to_vec()).await, Err(Unreadable::Type));
        assert!(read(&form, vec![b'a'; FORM_BYTES_MAX]).await.is_ok());
        assert_eq!(read(&form, vec![b'a'; FORM_BYTES_MAX + 1]).await, Err(Unreadable::TooLarge));
        let never = futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>();
        assert_eq!(receive(&form, Body::from_stream(never)).await, Err(Unreadable::Late));
    }
}
