//! The headers of every answer that is no call: what a browser may do with it.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
        X_CONTENT_TYPE_OPTIONS,
    },
};

/// Everything is of the node itself, and nothing is inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'";
/// For a year. Ports and subdomains of the name that have no TLS are not reached any more by who has seen it
/// over TLS, so that subdomains are left out.
const TRANSPORT: &str = "max-age=31536000";

/// Adds them. What says itself how it may be kept stays as it is.
pub fn protect(headers: &mut HeaderMap, tls: bool) {
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // With `no-referrer` a browser sends `Origin: null` with the node's own forms.
    headers.insert(REFERRER_POLICY, same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), same_origin.clone());
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), same_origin);
    headers.entry(CACHE_CONTROL).or_insert_with(|| HeaderValue::from_static("no-store"));
    if tls {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(TRANSPORT));
    }
}
